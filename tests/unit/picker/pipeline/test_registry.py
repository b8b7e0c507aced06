"""The registry of plugin types."""

import pytest
from pipeline_rig import Scoring, key, plugin_type

from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline.registry import PluginRegistry
from inferencecache.picker.plugins import BUILTIN_TYPES


def test_a_type_is_found_by_its_name() -> None:
    """The product's own are all there."""
    registry = PluginRegistry(BUILTIN_TYPES)
    assert [found.name for found in registry] == sorted(found.name for found in BUILTIN_TYPES)
    assert registry.find("queue-scorer", "type").name == "queue-scorer"


def test_an_unknown_type_names_the_nearest_one() -> None:
    """Including those that are installed and not loaded."""
    registry = PluginRegistry(
        [plugin_type("queue-scorer", Scoring())], {"weather": lambda: plugin_type("weather", 1)}
    )
    with pytest.raises(ConfigError) as caught:
        registry.find("queue-score", "plugins[2].type")
    assert caught.value.field == "plugins[2].type"
    assert caught.value.allowed == "queue-scorer, which is nearest; one of queue-scorer, weather"


@pytest.mark.parametrize("name", ["", "-a", "a;b", "a=b", "a b", "x" * 129, "ä"])
def test_names_can_stand_in_reasons_and_labels(name: str) -> None:
    """Anything else is refused."""
    with pytest.raises(ConfigError, match="plugin type"):
        PluginRegistry([plugin_type(name, Scoring())])


def test_a_name_is_given_once() -> None:
    """Whoever comes second is refused."""
    with pytest.raises(ConfigError, match="a name not taken"):
        PluginRegistry([plugin_type("a", Scoring()), plugin_type("a", Scoring())])
    with pytest.raises(ConfigError, match="a name not taken"):
        PluginRegistry([plugin_type("a", Scoring())], {"a": lambda: plugin_type("a", Scoring())})


def test_a_type_is_loaded_when_it_is_named_and_once() -> None:
    """Packages that are installed and not used are not imported."""
    loaded: list[str] = []

    def load(name: str) -> object:
        loaded.append(name)
        return plugin_type(name, Scoring())

    registry = PluginRegistry((), {name: lambda name=name: load(name) for name in ("a", "b")})
    registry.find("a", "type")
    registry.find("a", "type")
    assert loaded == ["a"]


def test_a_type_may_stand_in_for_a_missing_producer() -> None:
    """Where it says so."""
    made = key("made")
    registry = PluginRegistry([plugin_type("maker", Scoring(), default_for=(made,))])
    found = registry.default_for("made")
    assert found is not None
    assert found.name == "maker"
    assert registry.default_for("other") is None
