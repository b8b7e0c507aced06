"""What is counted and logged of plugins."""

from served_plane import Recorder

from inferencecache.clock import NS_PER_MS, NS_PER_S, ManualClock
from inferencecache.picker.pipeline import FailureKind, Hook
from inferencecache.transport import picker_plugin_catalog as catalog
from inferencecache.transport.picker_plugin_watch import PluginWatch


def rows(watch: PluginWatch, spec: object) -> dict[tuple[str, ...], float]:
    """Return the numbers of a metric."""
    (family,) = [family for family in watch.families() if family.spec is spec]
    return dict(family.numbers)


def test_failures_are_counted_by_hook() -> None:
    """Those of producers have a metric of their own."""
    watch = PluginWatch(Recorder(), ManualClock(), 0)
    for _ in range(2):
        watch.plugin_failed("p", Hook.PRODUCE, FailureKind.TIMEOUT, None)
    watch.plugin_failed("s", Hook.SCORE, FailureKind.RAISED, KeyError())
    assert rows(watch, catalog.PRODUCER_FAILURES) == {("p", "timeout"): 2}
    assert rows(watch, catalog.PLUGIN_FAILURES) == {("s", "score", "raised"): 1}


def test_producers_are_measured() -> None:
    """Each by its name."""
    watch = PluginWatch(Recorder(), ManualClock(), 0)
    watch.produced("p", 3 * NS_PER_MS)
    watch.produced("p", 2_000 * NS_PER_MS)
    (family,) = [each for each in watch.families() if each.spec is catalog.PRODUCER_LATENCY]
    spread = family.spreads["p",]
    assert spread.sum_ns == 2_003 * NS_PER_MS
    assert spread.counts == (0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1)


def test_the_log_gets_the_first_of_each_kind_and_interval() -> None:
    """With the number of those it did not get, and no text of what was raised."""
    log, clock = Recorder(), ManualClock()
    watch = PluginWatch(log, clock, NS_PER_S)
    for kind in (FailureKind.RAISED, FailureKind.RAISED, FailureKind.INVALID):
        watch.plugin_failed("s", Hook.SCORE, kind, KeyError("secret"))
    clock.advance_ns(NS_PER_S)
    watch.plugin_failed("s", Hook.SCORE, FailureKind.RAISED, None)
    lines = [fields for event, fields in log.lines if event == "picker_plugin_failed"]
    assert [(line["kind"], line["error"], line["unlogged"]) for line in lines] == [
        ("raised", "KeyError", 0),
        ("invalid", "KeyError", 0),
        ("raised", "", 1),
    ]
    assert "secret" not in str(lines)
