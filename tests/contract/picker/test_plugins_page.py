"""The plugins page: what it shows works, and what there is stands on it."""

import re
from pathlib import Path

import msgspec
from pipeline_rig import draws, question, sources, task_runner, worker
from served_picker import SMALL, serve_picker

import inferencecache.picker.pipeline as pipeline_package
from inferencecache.app.picker_plugins import PickerPluginParts, PickerPlugins
from inferencecache.clock import ManualClock
from inferencecache.picker.pipeline import (
    Director,
    DirectorParts,
    FailureKind,
    IgnorePlugins,
    PluginRegistry,
    TerminationCause,
)
from inferencecache.picker.pipeline.build import build_pipeline
from inferencecache.picker.pipeline.config import PipelineConfig, PluginEntry
from inferencecache.picker.pipeline.plugin import HOOKS
from inferencecache.picker.plugins import BUILTIN_TYPES
from inferencecache.resources.endpoint_picker_config import EndpointPickerConfig
from inferencecache.settings.picker_plugins import PickerPluginSettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport.picker_plugin_catalog import PICKER_PLUGIN_CATALOG
from inferencecache.transport.structured_log import StructuredLog
from inferencecache.transport.system_clock import SystemClock

PAGE = (Path(__file__).parents[3] / "docs" / "plugins.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the page's blocks in a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


async def test_the_configuration_at_the_top_serves(tmp_path: Path) -> None:
    """A session stays where it is; another tier would have gone round."""
    file = tmp_path / "plugins.yaml"
    file.write_text(blocks("yaml")[0])
    plugins = PickerPlugins(
        PickerPluginParts(
            settings=PickerPluginSettings(config_file=str(file)),
            resources=ResourceSettings(),
            clock=SystemClock(),
            log=StructuredLog(),
            log_interval_ns=0,
        )
    )
    body = b'{"model": "m", "prompt": "x", "session_id": "s"}'
    async with serve_picker(SMALL, director=plugins.director, clock=ManualClock(1)) as served:
        picked = [await served.push_and_pick(body) for _ in range(2)]
    assert len({answer.local.endpoint for answer in picked}) == 1
    assert {answer.reason.split(";")[1] for answer in picked} == {"rank=default"}


async def test_the_plugins_on_the_page_work() -> None:
    """Both are built by a configuration and asked by a director."""
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "docs/plugins.md", "exec"), names)  # noqa: S102 - our own page
    registry = PluginRegistry([*BUILTIN_TYPES, names["BIG_FIRST"], names["WEATHER_TYPE"]])
    entries = (
        PluginEntry(type="acme-big-first", parameters={"labelKey": "n"}),
        PluginEntry(type="acme-weather"),
    )
    built = build_pipeline(PipelineConfig(plugins=entries), sources(registry, draws(0.0)))
    parts = DirectorParts(
        pipeline=built,
        runner=task_runner(),
        observer=IgnorePlugins(),
        attributes_max=4,
        bytes_per_token=4,
    )
    run = Director(parts).open(question())
    views = [worker("small", labels={"n": "2"}), worker("big", labels={"n": "8"})]
    await run.produce(views)
    ranking = run.rank(views)
    assert [scored.endpoint.name for scored in ranking.order] == ["big", "small"]
    assert [scored.score for scored in ranking.order] == [1.75, 1.0]
    assert run.degraded == []


def test_every_type_has_one_row_with_its_hooks_and_parameters() -> None:
    """A new type, hook or parameter is found on the page."""
    rows = {
        cells[0].strip("`"): cells
        for line in PAGE.splitlines()
        if len(cells := [cell.strip() for cell in line[1:-1].split("|")]) == 4
    }
    for found in BUILTIN_TYPES:
        _, hooks, parameters, _ = rows[found.name]
        plugin = found.make(
            example_parameters(found.parameters), sources(PluginRegistry()).services
        )
        assert sorted(hooks.split(", ")) == sorted(
            hook.__name__ for hook in HOOKS if isinstance(plugin, hook)
        )
        named = re.findall(r"`(\w+)`(?= |,|$)", parameters)
        expected = [field.encode_name for field in msgspec.structs.fields(found.parameters)]
        assert [name for name in named if name in expected] == expected


def example_parameters(model: type[msgspec.Struct]) -> msgspec.Struct:
    """Return parameters with a text wherever one is required."""
    required = [field.name for field in msgspec.structs.fields(model) if field.required]
    return model(**dict.fromkeys(required, "x"))


def test_words_of_the_code_stand_on_the_page() -> None:
    """Hooks, ways to fail, causes of an end, sections of the file, metrics."""
    words = [hook.__name__ for hook in HOOKS if hook.__name__ != "ProfileHandler"]
    words += [kind.value for kind in FailureKind]
    words += [cause.value for cause in TerminationCause]
    words += [field.encode_name for field in msgspec.structs.fields(EndpointPickerConfig)]
    words += [spec.name for spec in PICKER_PLUGIN_CATALOG]
    assert [word for word in words if word not in PAGE] == []


def test_what_hooks_are_given_is_all_there() -> None:
    """Every public field, and none that is not."""
    table = PAGE.split("| hooks are given | with |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)
    assert len(rows) == 7
    for name, fields in rows:
        given = getattr(pipeline_package, name)
        named = set(re.findall(r"`(\w+)`", fields))
        public = {field for field in given.__slots__ if not field.startswith("_")}
        public |= {field for field, value in vars(given).items() if isinstance(value, property)}
        assert named == public


def test_every_method_of_a_hook_is_in_the_table() -> None:
    """In the order in which they are called."""
    steps = re.findall(r"^\| \d+ \| `(\w+)\(", PAGE, re.MULTILINE)
    methods = [
        name
        for hook in HOOKS
        for name in vars(hook)
        if not name.startswith("_") and name != "produces"
    ]
    assert sorted(steps) == sorted(set(methods) - {"profile"})
