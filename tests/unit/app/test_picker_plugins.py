"""Plugins as a server loads them: from a file, and from packages that are installed."""

import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from pipeline_rig import question
from plugin_files import HEAD, in_directory, load
from served_plane import Recorder

from inferencecache.app.picker_plugins import (
    ENTRY_POINT_GROUP,
    PickerPluginParts,
    PickerPlugins,
    installed_registry,
)
from inferencecache.clock import ManualClock
from inferencecache.errors import ConfigError
from inferencecache.settings.picker_choice import PickerChoiceSettings
from inferencecache.settings.picker_plugins import PickerPluginSettings
from inferencecache.settings.resources import ResourceSettings

MODULE = """
from inferencecache.picker.pipeline import PluginParameters, PluginType

class Free:
    def admit(self, request, endpoints):
        pass

def make(parameters, services):
    return Free()

FREE = PluginType(name="own-free", parameters=PluginParameters, make=make)
OTHER = 3
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package with entry points, some of them wrong, and return its module's file."""
    home = tmp_path / "site"
    info = home / "own_plugins-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-plugins\nVersion: 1\n")
    entries = ("own-free = own_plugins:FREE", "own-other = own_plugins:OTHER")
    entries += ("own-alias = own_plugins:FREE", "own-gone = own_plugins:GONE")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n" + "\n".join(entries))
    (home / "own_plugins.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(home))
    yield home / "own_plugins.py"
    sys.modules.pop("own_plugins", None)


def without_a_file(choice: PickerChoiceSettings | None = None) -> PickerPlugins:
    """Return the plugins of a picker that is told of none."""
    return PickerPlugins(
        PickerPluginParts(
            settings=PickerPluginSettings(),
            resources=ResourceSettings(),
            clock=ManualClock(),
            log=Recorder(),
            log_interval_ns=0,
            choice=choice or PickerChoiceSettings(),
        )
    )


def test_without_a_file_there_are_no_plugins() -> None:
    """And nothing is imported."""
    assert without_a_file().director.profile_names == ()


def test_prompts_are_believed_to_be_as_long_as_everywhere() -> None:
    """Plugins see as many tokens as estimates are made of."""
    plugins = without_a_file(PickerChoiceSettings(bytes_per_token=2))
    assert plugins.director.open(question(content=b"x" * 100)).request.prompt_tokens == 50


def test_a_file_names_plugins_and_profiles(tmp_path: Path) -> None:
    """Sections without effect are logged, each once."""
    log = Recorder()
    text = f"{HEAD}plugins: [{{type: queue-scorer}}]\nflowControl: {{maxBytes: 1G}}\n"
    assert load(tmp_path, text, log).director.profile_names == ("default",)
    assert [(event, fields["section"]) for event, fields in log.lines] == [
        ("picker_config_section_without_effect", "flowControl")
    ]


def test_it_may_stand_among_resource_files(tmp_path: Path) -> None:
    """In any of their documents; files that are no YAML are told of elsewhere."""
    objects = (
        "apiVersion: inferencecache.io/v1alpha1\nkind: CachePolicy\nmetadata: {name: a}\n---\n"
    )
    text = f"{objects}{HEAD}plugins: [{{type: queue-scorer}}]"
    plugins = in_directory(tmp_path, a=text, b="[EndpointPickerConfig", c="kind: X")
    assert plugins.director.profile_names == ("default",)


def test_a_file_of_its_own_comes_before_resource_files(tmp_path: Path) -> None:
    """Which then need not hold one that counts."""
    (tmp_path / "b.yaml").write_text(f"{HEAD}plugins: [{{type: nonsense}}]")
    assert load(tmp_path, f"{HEAD}plugins: []").director.profile_names == ()


def test_there_is_one(tmp_path: Path) -> None:
    """Which of two would count nobody can know."""
    with pytest.raises(ConfigError, match=r"a.yaml#1, a.yaml#2, b.yaml#1.*one in all files"):
        in_directory(tmp_path, a=f"{HEAD}---\n{HEAD}", b=HEAD)


def test_a_mistake_among_resource_files_ends_the_start(tmp_path: Path) -> None:
    """Here nothing was good before."""
    with pytest.raises(ConfigError, match="queue-scorer, which is nearest"):
        in_directory(tmp_path, a=f"{HEAD}plugins: [{{type: queue-scor}}]")
    with pytest.raises(ConfigError, match="apiVersion: 'v2'"):
        in_directory(tmp_path, a="apiVersion: v2\nkind: EndpointPickerConfig")


def test_a_directory_that_is_not_there_names_none(tmp_path: Path) -> None:
    """Whoever loads the objects in it waits for it."""
    assert in_directory(tmp_path / "later").director.profile_names == ()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With what the system says."""
    parts = PickerPluginParts(
        settings=PickerPluginSettings(config_file=str(tmp_path / "nothing.yaml")),
        resources=ResourceSettings(),
        clock=ManualClock(),
        log=Recorder(),
        log_interval_ns=0,
    )
    with pytest.raises(ConfigError, match=r"picker-config: '.*nothing.yaml'.*No such file"):
        PickerPlugins(parts)


def test_limits_of_the_settings_hold(tmp_path: Path) -> None:
    """As for the number of plugins."""
    text = f"{HEAD}plugins: [{{type: queue-scorer}}, {{type: random-picker}}]"
    with pytest.raises(ConfigError, match="at most 1"):
        load(tmp_path, text, plugins_max=1)


def test_null_parameters_count_as_absent(tmp_path: Path) -> None:
    """As everywhere in resources."""
    text = f"{HEAD}plugins: [{{type: active-request-scorer, parameters: {{idleThreshold: null}}}}]"
    assert load(tmp_path, text).director.profile_names == ("default",)


@pytest.mark.usefixtures("package")
def test_an_installed_type_is_found_and_imported_when_it_is_named(tmp_path: Path) -> None:
    """And not before."""
    registry = installed_registry()
    assert "own_plugins" not in sys.modules
    assert len(entry_points(group=ENTRY_POINT_GROUP)) >= 4
    assert registry.find("own-free", "type").name == "own-free"
    assert "own_plugins" in sys.modules
    load(tmp_path, f"{HEAD}plugins: [{{type: own-free}}]")


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("own-other", "a PluginType with the name own-other"),
        ("own-alias", "a PluginType with the name own-alias"),
        ("own-gone", "something that can be imported: module 'own_plugins' has no attribute"),
    ],
)
@pytest.mark.usefixtures("package")
def test_an_entry_point_that_is_wrong_is_named(name: str, allowed: str) -> None:
    """It harms whoever names it, and nobody else."""
    registry = installed_registry()
    with pytest.raises(ConfigError) as caught:
        registry.find(name, "type")
    assert caught.value.field == ENTRY_POINT_GROUP
    assert allowed in caught.value.allowed


def test_a_package_that_breaks_when_it_is_imported_is_named(package: Path) -> None:
    """Whatever it raises."""
    package.write_text("raise RuntimeError('no licence')")
    with pytest.raises(ConfigError, match="something that can be imported: no licence"):
        installed_registry().find("own-free", "type")


def test_a_package_cannot_take_a_name_of_the_products(package: Path) -> None:
    """Nor one that another package has."""
    info = next(package.parent.glob("*.dist-info")) / "entry_points.txt"
    info.write_text(f"[{ENTRY_POINT_GROUP}]\nqueue-scorer = own_plugins:FREE\n")
    with pytest.raises(ConfigError, match="a name not taken"):
        installed_registry()
