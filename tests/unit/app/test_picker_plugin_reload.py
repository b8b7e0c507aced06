"""A configuration of plugins that changes while a server runs."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plugin_files import HEAD, in_directory, load
from served_plane import Recorder

from inferencecache.app.picker_plugins import PickerPlugins
from inferencecache.picker.pipeline import Director, FailureKind, Hook
from inferencecache.settings.resources import ResourceSettings


class Changing:
    """Plugins whose configuration changes, and what came of it."""

    def __init__(self, file: Path, plugins: PickerPlugins, log: Recorder) -> None:
        self.file = file
        self.plugins = plugins
        self.directors: list[Director] = []
        self.log = log
        plugins.on_change = self.directors.append

    async def put(self, text: str, looks: int = 2) -> tuple[str, ...]:
        """Write the file anew, look so often, and return the profiles in force."""
        self.file.write_text(text)
        for _ in range(looks):
            await self.plugins.look()
        return self.plugins.director.profile_names

    def events(self) -> list[str]:
        """Return what was logged."""
        return [event for event, _ in self.log.lines]

    def numbers(self) -> dict[str, dict[tuple[str, ...], float]]:
        """Return the metrics of the configuration."""
        families = {family.spec.name: family for family in self.plugins.watch.families()}
        return {
            name: dict(families[f"inferencecache_picker_config_{name}"].numbers)
            for name in ("loads_total", "refused")
        }


RANDOM = f"{HEAD}plugins: [{{type: random-picker}}]\n"
NAMED = f"{RANDOM}schedulingProfiles: [{{name: own, plugins: [{{pluginRef: random-picker}}]}}]\n"
BROKEN = [
    "[",
    "",
    f"{HEAD}plugins: 7",
    f"{HEAD}plugins: [{{type: nonsense}}]",
    f"{NAMED}---\n{NAMED}",
    NAMED.replace("pluginRef: random-picker", "pluginRef: gone"),
]
TENANT = """
apiVersion: inferencecache.io/v1alpha1
kind: CacheTenant
metadata: {name: t}
spec: {tenantID: t}
"""


@pytest.fixture
def changing(tmp_path: Path) -> Changing:
    """Return plugins of a file that may be written anew."""
    log = Recorder()
    return Changing(tmp_path / "plugins.yaml", load(tmp_path, RANDOM, log), log)


async def test_a_changed_file_comes_into_force(changing: Changing) -> None:
    """As soon as two looks have found the same; once, and as a whole."""
    before = changing.plugins.director
    assert await changing.put(NAMED, looks=1) == ("default",)
    assert changing.directors == []
    assert await changing.put(NAMED, looks=3) == ("own",)
    assert changing.directors == [changing.plugins.director]
    assert changing.plugins.director is not before
    assert before.profile_names == ("default",)
    assert changing.events() == ["picker_config_loaded"]
    assert changing.numbers() == {"loads_total": {("loaded",): 1}, "refused": {(): 0}}


@pytest.mark.parametrize("text", BROKEN)
async def test_a_broken_file_leaves_the_last_good_one(changing: Changing, text: str) -> None:
    """It is told once, and undoing the mistake makes no plugin begin anew."""
    assert await changing.put(NAMED) == ("own",)
    good = changing.plugins.director
    assert await changing.put(text, looks=4) == ("own",)
    assert changing.plugins.director is good
    assert changing.events() == ["picker_config_loaded", "picker_config_refused"]
    assert changing.log.lines[1][1]["profiles_kept"] == "own"
    assert changing.numbers() == {
        "loads_total": {("loaded",): 1, ("refused",): 1},
        "refused": {(): 1},
    }
    assert await changing.put(NAMED) == ("own",)
    assert changing.directors == [good]
    assert changing.numbers()["refused"] == {(): 0}


async def test_a_file_that_is_gone_leaves_what_it_said(changing: Changing) -> None:
    """Until it is there again."""
    changing.file.unlink()
    for _ in range(3):
        await changing.plugins.look()
    assert changing.plugins.director.profile_names == ("default",)
    assert changing.events() == ["picker_config_refused"]
    assert await changing.put(NAMED) == ("own",)


async def test_half_of_a_file_never_counts(changing: Changing) -> None:
    """Not if the other half comes before the second look."""
    half = f"{RANDOM}schedulingProfiles: []\n"
    assert await changing.put(half, looks=1) == ("default",)
    assert await changing.put(NAMED, looks=1) == ("default",)
    assert await changing.put(NAMED, looks=1) == ("own",)
    assert len(changing.directors) == 1


async def test_a_file_that_is_too_large_is_refused(changing: Changing) -> None:
    """Without being read to its end."""
    bytes_max = ResourceSettings().file_bytes_max
    assert await changing.put(NAMED + "#" * bytes_max) == ("default",)
    assert changing.events() == ["picker_config_refused"]
    assert f"at most {bytes_max} bytes" in str(changing.log.lines[0][1]["reason"])


async def test_a_configuration_among_resource_files_may_change_and_go(tmp_path: Path) -> None:
    """Gone, there are no plugins; a directory that is gone says nothing."""
    changing = Changing(tmp_path / "a.yaml", in_directory(tmp_path, a=RANDOM), Recorder())
    assert await changing.put(NAMED) == ("own",)
    assert await changing.put(TENANT) == ()
    assert await changing.put(RANDOM) == ("default",)
    assert await changing.put("# nothing") == ()
    assert await changing.put(RANDOM) == ("default",)
    await asyncio.to_thread(tmp_path.rename, tmp_path.with_name("elsewhere"))
    for _ in range(3):
        await changing.plugins.look()
    assert changing.plugins.director.profile_names == ("default",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{{", "a key that is no text"),
        (f"{RANDOM}---\n[", "YAML"),
        (
            RANDOM.replace("Config", "Confi"),
            "kind: 'EndpointPickerConfi' is not allowed (from a.yaml:1)",
        ),
        (f"{TENANT}---\nspec: {{}}", "kind: 'nothing' is not allowed (from a.yaml:6)"),
        (f"{TENANT.replace('tenantID', 'tenant')}---\nkind: X", "kind: 'X'"),
        ("", "an empty file"),
    ],
)
async def test_a_resource_file_that_cannot_be_told_takes_nothing_away(
    tmp_path: Path, text: str, reason: str
) -> None:
    """The last good configuration stays until the file says what it is; with the file it goes."""
    log = Recorder()
    changing = Changing(tmp_path / "a.yaml", in_directory(tmp_path, log, a=NAMED), log)
    assert await changing.put(text) == ("own",)
    assert changing.events() == ["picker_config_refused"]
    assert reason in str(log.lines[0][1]["reason"])
    assert log.lines[0][1]["profiles_kept"] == "own"
    assert changing.numbers()["refused"] == {(): 1}
    changing.file.unlink()
    await changing.plugins.look()
    await changing.plugins.look()
    assert changing.plugins.director.profile_names == ()


async def test_it_may_move_to_another_resource_file(tmp_path: Path) -> None:
    """Whatever becomes of the first, and of files in which it has never been."""
    log = Recorder()
    changing = Changing(tmp_path / "a.yaml", in_directory(tmp_path, log, a=NAMED, c="kind: X"), log)
    (tmp_path / "b.yaml").write_text(RANDOM)
    assert await changing.put("[") == ("default",)
    assert changing.events() == ["picker_config_loaded"]
    (tmp_path / "b.yaml").unlink()
    assert await changing.put("[") == ()


async def test_numbers_of_plugins_that_are_gone_are_forgotten(changing: Changing) -> None:
    """So that their labels do not pile up over many changes."""
    watch = changing.plugins.watch
    for number in range(3):
        name = f"p{number}"
        await changing.put(f"{HEAD}plugins: [{{type: random-picker, name: {name}}}]")
        watch.plugin_failed(name, Hook.PICK, FailureKind.RAISED, None)
        watch.plugin_failed(name, Hook.PRODUCE, FailureKind.RAISED, None)
        watch.produced(name, 1)
    labels = {
        labels[0]
        for family in watch.families()
        for labels in (*family.numbers, *family.spreads)
        if family.spec.name.startswith("inferencecache_picker_pl")
        or family.spec.name.startswith("inferencecache_picker_producer")
    }
    assert labels == {"p2"}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([RANDOM, NAMED, *BROKEN]), max_size=8))
def test_any_edits_end_in_the_last_good_one(texts: list[str]) -> None:
    """Whatever was written in between, what is in force is what was right last."""
    with TemporaryDirectory() as directory:
        log = Recorder()
        plugins = load(Path(directory), RANDOM, log)
        changing = Changing(Path(directory) / "plugins.yaml", plugins, log)
        expected = ("default",)
        for text in texts:
            expected = {RANDOM: ("default",), NAMED: ("own",)}.get(text, expected)
            assert asyncio.run(changing.put(text)) == expected
