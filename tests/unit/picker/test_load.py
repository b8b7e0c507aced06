"""How long a request counts whose caller says nothing."""

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.picker.decisions import Ending
from inferencecache.picker.load import EngineSignal, EngineSignals, LoadTable
from inferencecache.settings.picker_load import PickerLoadSettings

TTL_NS = 900 * NS_PER_S


def table_after(durations_s: list[int]) -> tuple[LoadTable, ManualClock]:
    """Return a table that has seen requests of so many seconds finish."""
    clock = ManualClock(0)
    table = LoadTable(PickerLoadSettings(), TTL_NS, clock)
    for seconds in durations_s:
        share = table.place("a:1", 1, 1)
        clock.advance_ns(seconds * NS_PER_S)
        share.ended(Ending.FINISHED, None)
    return table, clock


def test_until_enough_is_known_the_decision_s_time_counts() -> None:
    """Of 99 ends nobody can tell what one in a hundred takes."""
    assert table_after([5] * 99)[0].age_limit_ns == TTL_NS


def test_twice_what_one_in_a_hundred_takes() -> None:
    """98 of 5 s and 2 of 30 s: 30 s, twice."""
    assert table_after([5] * 98 + [30, 30])[0].age_limit_ns == 60 * NS_PER_S


def test_one_that_takes_for_ever_does_not_count() -> None:
    """The 99th percentile of a hundred is the second longest; short ones still get ten seconds."""
    assert table_after([5] * 99 + [800])[0].age_limit_ns == 10 * NS_PER_S
    assert table_after([1] * 100)[0].age_limit_ns == 10 * NS_PER_S


def test_never_longer_than_a_decision() -> None:
    """Whatever was seen."""
    assert table_after([800] * 100)[0].age_limit_ns == TTL_NS


def test_only_whole_requests_are_seen() -> None:
    """One that was aborted at once says nothing of how long they take."""
    clock = ManualClock(0)
    table = LoadTable(PickerLoadSettings(), TTL_NS, clock)
    for _ in range(200):
        table.place("a:1", 1, 1).ended(Ending.ABORTED, None)
    assert table.age_limit_ns == TTL_NS


def test_a_silent_caller_does_not_weigh_for_ever() -> None:
    """Its request counts ten seconds here, then nothing, and its end finds nothing to take away."""
    table, clock = table_after([1] * 100)
    silent = table.place("a:1", 500, 0)
    clock.advance_ns(10 * NS_PER_S - 1)
    table.expire(clock.monotonic_ns())
    assert table.of("a:1") == (1, 500, 0)
    clock.advance_ns(1)
    table.expire(clock.monotonic_ns())
    assert (table.of("a:1"), table.aged, len(table)) == ((0, 0, 0), 1, 0)
    silent.ended(Ending.EXPIRED, None)
    assert table.of("a:1") == (0, 0, 0)


def test_signals_go_stale_and_go_with_their_candidates() -> None:
    """At the limit they count, past it not."""
    signals = EngineSignals(2 * NS_PER_S)
    signals.put("a:1", EngineSignal(waiting=1), 0)
    signals.put("b:1", EngineSignal(waiting=2), NS_PER_S)
    assert signals.of("a:1", 2 * NS_PER_S) == EngineSignal(waiting=1)
    assert signals.of("a:1", 2 * NS_PER_S + 1) is None
    assert signals.fresh(2 * NS_PER_S + 1) == 1
    signals.retain({"a:1"})
    assert (len(signals), signals.of("b:1", NS_PER_S)) == (1, None)
