"""Who has a metric label of its own, for how long, and what that does to the numbers."""

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.settings.metrics import MetricsSettings
from inferencecache.transport.metric_labels import OTHER, BoundedLabels, LabelledTotals

IDLE_NS = 300 * NS_PER_S


class Bench:
    """Labels under a clock of the test's."""

    def __init__(self, labels_max: int, known: set[str] | None = None) -> None:
        self.clock = ManualClock()
        settings = MetricsSettings(labels_max=labels_max, label_idle_ns=IDLE_NS)
        is_known = known.__contains__ if known is not None else lambda _: True
        self.labels = BoundedLabels(settings, is_known, self.clock)

    def scrape(self, numbers: dict[str, int], after_ns: int = 0) -> list[str]:
        """Return the labels taken back by one scrape, some time after the last."""
        self.clock.advance_ns(after_ns)
        return self.labels.make_room(numbers)


def test_first_come_first_served() -> None:
    """Values beyond the bound, and those that are not known, share a label."""
    bench = Bench(2, {"a", "b", "c"})

    assert [bench.labels.label_of(value) for value in "xabca"] == [OTHER, "a", "b", OTHER, "a"]


def test_a_label_stays_while_nobody_else_needs_it() -> None:
    """Counters of a series must not stop because its value left the index."""
    known = {"a"}
    bench = Bench(1, known)
    assert bench.labels.label_of("a") == "a"
    known.clear()
    assert [bench.scrape({}, after_ns=IDLE_NS) for _ in range(3)] == [[], [], []]
    assert bench.labels.label_of("a") == "a"
    assert bench.labels.fold({}) == {"a": 0}


def test_those_that_wait_get_the_labels_of_the_longest_idle() -> None:
    """No more are taken than are wanted, and none before its time is over."""
    bench = Bench(3)
    numbers = {"a": 1, "b": 1, "c": 1}
    assert bench.labels.fold(numbers) == numbers

    numbers |= {"b": 0, "d": 5}
    assert bench.scrape(numbers) == []
    numbers |= {"a": 0}
    assert bench.scrape(numbers, after_ns=1) == []
    assert bench.scrape(numbers, after_ns=IDLE_NS - 2) == []
    assert bench.labels.fold(numbers) == {"a": 0, "b": 0, "c": 1, OTHER: 5}
    assert bench.scrape(numbers, after_ns=1) == ["b"]
    assert bench.labels.fold(numbers) == {"a": 0, OTHER: 0, "c": 1, "d": 5}
    assert bench.scrape(numbers, after_ns=IDLE_NS) == []


def test_whoever_has_something_again_begins_anew() -> None:
    """Idle times are not added up, however often somebody scrapes."""
    bench = Bench(1)
    for _ in range(5):
        assert bench.scrape({"a": 1, "b": 1}, after_ns=IDLE_NS - 1) == []
        assert bench.scrape({"b": 1}) == []
    assert bench.scrape({"b": 1}, after_ns=IDLE_NS) == ["a"]


def test_no_labels_at_all() -> None:
    """With a bound of 0 everything is counted together."""
    bench = Bench(0)

    assert bench.scrape({"a": 1}) == []
    assert bench.labels.fold({"a": 1, "b": 2}) == {OTHER: 3}


def test_a_value_named_other_counts_once() -> None:
    """It shares the series of all the others, whether or not it has a label."""
    bench = Bench(1)

    assert bench.labels.fold({OTHER: 2, "a": 3}) == {OTHER: 5}


def test_no_series_of_a_counter_goes_down() -> None:
    """A value that gets a label begins there with what comes then; the rest stays where it was."""
    bench = Bench(1)
    totals = LabelledTotals(bench.labels)
    assert totals.add_up({"a": 10, "b": 7}) == {"a": 10, OTHER: 7}

    bench.scrape({"b": 1})
    totals.forget(bench.scrape({"b": 1}, after_ns=IDLE_NS))
    assert totals.add_up({"a": 10, "b": 7}) == {OTHER: 7}
    assert totals.add_up({"a": 10, "b": 9}) == {OTHER: 7, "b": 2}
    assert totals.add_up({"a": 11, "b": 9}) == {OTHER: 8, "b": 2}


def test_totals_that_begin_again_are_added() -> None:
    """A source that has forgotten a value may count it anew, from 0."""
    totals = LabelledTotals(Bench(1).labels)

    assert totals.add_up({"a": 10}) == {"a": 10}
    assert totals.add_up({}) == {"a": 10}
    assert totals.add_up({"a": 3}) == {"a": 13}
    assert totals.add_up({"a": 2}) == {"a": 15}
