"""From configurations to pipelines."""

import pytest
from pipeline_rig import (
    Following,
    Making,
    Scoring,
    key,
    pipeline,
    plugin_type,
    profile,
    raising,
    registry,
    sources,
)

from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline.build import build_pipeline
from inferencecache.picker.pipeline.config import PipelineConfig, PluginEntry
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginRegistry
from inferencecache.picker.plugins import BUILTIN_TYPES


class Secretive(PluginParameters, frozen=True):
    """Parameters nobody should read in a log."""

    token: str
    place: str


def test_a_profile_without_a_picker_gets_one() -> None:
    """As what else is left out."""
    built = pipeline(profiles=[profile("p")])
    assert list(built.profiles) == ["p"]
    assert built.profiles["p"].picker.name == "max-score-picker"
    assert built.profile_handler is not None
    assert built.profile_handler.name == "single-profile-handler"
    assert built.producers == ()


def test_without_profiles_there_is_one_of_all_plugins() -> None:
    """Filters and scorers in order, each with weight 1."""
    built = pipeline(
        PluginEntry(type="label-selector-filter"),
        PluginEntry(type="queue-scorer"),
        PluginEntry(type="random-picker"),
        PluginEntry(type="active-request-scorer", name="busy"),
    )
    made = built.profiles["default"]
    assert [step.name for step in made.filters] == ["label-selector-filter"]
    assert [(step.scorer.name, step.weight) for step in made.scorers] == [
        ("queue-scorer", 1.0),
        ("busy", 1.0),
    ]
    assert made.picker.name == "random-picker"


def test_plugins_that_rank_nothing_make_no_profile() -> None:
    """The order of endpoints is then what it is without the file."""
    assert dict(pipeline(follow=Following()).profiles) == {}


def test_profiles_take_the_plugins_that_they_name() -> None:
    """With their weights; each of them gets a picker."""
    built = pipeline(
        PluginEntry(type="queue-scorer"),
        PluginEntry(type="active-request-scorer"),
        profiles=[profile("a", ("queue-scorer", 2.5)), profile("b", "active-request-scorer")],
    )
    assert list(built.profiles) == ["a", "b"]
    assert [(step.scorer.name, step.weight) for step in built.profiles["a"].scorers] == [
        ("queue-scorer", 2.5)
    ]
    assert built.profiles["a"].picker.plugin is built.profiles["b"].picker.plugin


def test_one_plugin_stands_under_each_of_its_hooks() -> None:
    """As one object."""
    following = Following()
    built = pipeline(follow=following)
    assert [step.plugin for step in built.pre_requests] == [following]
    assert [step.plugin for step in built.header_processors] == [following]
    assert [step.plugin for step in built.body_processors] == [following]
    assert built.pre_admitters == built.admitters == ()


def test_a_missing_producer_is_added_if_one_is_known() -> None:
    """As for the token load, whose producer is the product's own."""
    built = pipeline(PluginEntry(type="token-load-scorer"))
    assert [step.name for step in built.producers] == ["inflight-load-producer"]
    assert [step.name for step in built.pre_requests] == ["inflight-load-producer"]


def test_an_added_producer_may_bring_others() -> None:
    """Until nothing is missing."""
    a, b = key("a"), key("b")
    scorer = Scoring()
    scorer.consumes = (b,)
    types = [
        plugin_type("makes-a", Making(a), default_for=(a,)),
        plugin_type("makes-b", Making(b, needs=(a,)), default_for=(b,)),
        plugin_type("reads-b", scorer),
    ]
    config = PipelineConfig(plugins=(PluginEntry(type="reads-b"),))
    built = build_pipeline(config, sources(PluginRegistry([*BUILTIN_TYPES, *types])))
    assert [step.name for step in built.producers] == ["makes-a", "makes-b"]


QUEUE = PluginEntry(type="queue-scorer")


@pytest.mark.parametrize(
    ("entries", "profiles", "field", "allowed"),
    [
        ([PluginEntry(type="queue-scorr")], [], "plugins[0].type", "queue-scorer, which is near"),
        ([QUEUE, QUEUE], [], "plugins[1].name", "a name that no other plugin has"),
        ([PluginEntry(type="queue-scorer", name="a;b")], [], "plugins[0].name", "letters"),
        (
            [PluginEntry(type="active-request-scorer", parameters={"idleThreshold": -1})],
            [],
            "plugins[0].parameters.idleThreshold",
            "int >= 0",
        ),
        ([], [profile("p", "queue")], "schedulingProfiles[0].plugins[0].pluginRef", "one of"),
        (
            [QUEUE],
            [profile("p", "queue-scorer", "queue-scorer")],
            "schedulingProfiles[0].plugins[1].pluginRef",
            "each plugin once",
        ),
        ([], [profile("p"), profile("p")], "schedulingProfiles[1].name", "no other profile"),
        ([], [profile("a b")], "schedulingProfiles[0].name", "letters"),
        (
            [QUEUE],
            [profile("p", ("queue-scorer", -1.0))],
            "schedulingProfiles[0].plugins[0].weight",
            "not negative",
        ),
        (
            [QUEUE],
            [profile("p", ("queue-scorer", float("nan")))],
            "schedulingProfiles[0].plugins[0].weight",
            "not negative",
        ),
        (
            [PluginEntry(type="random-picker")],
            [profile("p", ("random-picker", 1.0))],
            "schedulingProfiles[0].plugins[0].weight",
            "no weight",
        ),
        (
            [PluginEntry(type="random-picker"), PluginEntry(type="max-score-picker")],
            [],
            "schedulingProfiles[0].plugins",
            "one picker",
        ),
        (
            [PluginEntry(type="label-selector-filter", name="max-score-picker")],
            [profile("p")],
            "schedulingProfiles[0].plugins",
            "max-score-picker is the name of another plugin",
        ),
        (
            [PluginEntry(type="inflight-load-producer")],
            [profile("p", "inflight-load-producer")],
            "schedulingProfiles[0].plugins[0].pluginRef",
            "a filter, scorer or picker",
        ),
        (
            [
                PluginEntry(type="single-profile-handler"),
                PluginEntry(type="single-profile-handler", name="second"),
            ],
            [],
            "plugins",
            "one profile handler",
        ),
        ([PluginEntry(type="queue-scorer", name=f"q{n}") for n in range(65)], [], "plugins", "64"),
        ([], [profile(f"p{n}") for n in range(65)], "schedulingProfiles", "at most 64"),
    ],
)
def test_what_cannot_be_is_named(
    entries: list[PluginEntry], profiles: list[object], field: str, allowed: str
) -> None:
    """The field, and what would be right."""
    with pytest.raises(ConfigError) as caught:
        pipeline(*entries, profiles=profiles)
    assert caught.value.field == field
    assert allowed in caught.value.allowed


def test_a_type_without_a_hook_is_no_plugin() -> None:
    """It would never be called."""
    with pytest.raises(ConfigError, match="a type whose plugins have a hook"):
        pipeline(nothing=object())


@pytest.mark.parametrize("hook", ["pre_admit", "admit", "score", "pre_request", "response_body"])
def test_a_hook_that_waits_is_refused(hook: str) -> None:
    """Nobody would await it, and an Admitter like that would let everybody in."""

    async def wait(*_: object) -> None:
        """Wait."""

    plugin = type("Waiting", (), {hook: wait})()
    with pytest.raises(ConfigError) as caught:
        pipeline(waiting=plugin)
    assert caught.value.value == f"async def {hook}"
    assert caught.value.allowed == f"def {hook}: only produce may wait"


@pytest.mark.parametrize("keys", ["a", ["a"], 3, None])
def test_what_a_plugin_declares_is_looked_at(keys: object) -> None:
    """A name is no key: its values would have no type."""
    scorer = Scoring()
    scorer.consumes = keys
    with pytest.raises(ConfigError, match=r"plugins.scorer.consumes"):
        pipeline(scorer=scorer)


def test_there_is_an_end_to_keys() -> None:
    """So that what is attached to an endpoint has one, too."""
    with pytest.raises(ConfigError, match=r"keys that plugins produce: 65 .* at most 64"):
        pipeline(first=Making(*(key(f"k{n}") for n in range(65))))
    assert len(pipeline(first=Making(*(key(f"k{n}") for n in range(64)))).producers) == 1


def test_a_factory_that_refuses_says_why() -> None:
    """In its own words if it raises ValueError, by name if it breaks."""
    config = PipelineConfig(plugins=(PluginEntry(type="own", parameters={}),))
    for error, words in ((ValueError("a full moon"), "a full moon"), (OSError(), "no OSError")):
        known = registry()
        known.add(plugin_type("own", None))
        object.__setattr__(known.find("own", ""), "make", raising("make", error).make)
        with pytest.raises(ConfigError, match=words):
            build_pipeline(config, sources(known))


def test_the_error_of_a_factory_shows_no_values() -> None:
    """They may be keys and passwords; the names tell where to look."""
    known = registry()
    known.add(plugin_type("own", None))
    refused = raising("make", ValueError("a full moon")).make
    object.__setattr__(known.find("own", ""), "make", refused)
    object.__setattr__(known.find("own", ""), "parameters", Secretive)
    entry = PluginEntry(type="own", parameters={"token": "SECRET", "place": "SECRET"})

    with pytest.raises(ConfigError, match="a full moon") as caught:
        build_pipeline(PipelineConfig(plugins=(entry,)), sources(known))

    assert caught.value.value == ["place", "token"]
    assert "SECRET" not in str(caught.value)
