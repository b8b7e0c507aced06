"""What a scrape costs and shows of the control surface's numbers."""

from collections.abc import ItemsView, Mapping

from inferencecache.transport.metrics_control import T2_HIT_RATE, ControlMetrics
from inferencecache.types import StatsRecord, StatsReport

Key = tuple[str, str, str]


def record(key: Key, hits: int, seen_ns: int = 0) -> StatsRecord:
    """Return statistics with 100 tokens asked."""
    stats = StatsReport(t2_hit_tokens=hits, t2_query_tokens=100)
    return StatsRecord(key[2], stats, seen_ns, key[1])


class Index:
    """An index that has nothing but these records; a snapshot would fail."""

    def __init__(self, records: Mapping[Key, StatsRecord]) -> None:
        self.tier2_records = records


def rates(records: Mapping[Key, StatsRecord], replicas_max: int) -> Mapping[tuple[str, ...], float]:
    """Return the rates shown."""
    families = ControlMetrics(Index(records), replicas_max).families()
    (family,) = [family for family in families if family.spec is T2_HIT_RATE]
    return family.numbers


def test_rates_come_from_the_records_alone() -> None:
    """No snapshot of the index is taken for them."""
    records = {key: record(key, 25) for key in [("t1", "m", "a"), ("t2", "m", "a")]}
    assert rates(records, 10) == {("t1", "a"): 0.25, ("t2", "a"): 0.25}


def test_of_several_models_the_latest_report_counts() -> None:
    """A replica has one rate per tenant."""
    records = {
        ("t", "m1", "a"): record(("t", "m1", "a"), 10, seen_ns=2),
        ("t", "m2", "a"): record(("t", "m2", "a"), 90, seen_ns=3),
        ("t", "m3", "a"): record(("t", "m3", "a"), 50, seen_ns=1),
    }
    assert rates(records, 10) == {("t", "a"): 0.9}


class Counted(dict[Key, StatsRecord]):
    """Counts how many of its items are looked at."""

    seen = 0

    def items(self) -> ItemsView[Key, StatsRecord]:  # type: ignore[override] # counts on the way
        """Yield the items."""
        for item in super().items():
            self.seen += 1
            yield item


def test_a_scrape_looks_at_no_more_than_it_shows() -> None:
    """However many tenants there are."""
    keys = [(f"t{number}", "m", "a") for number in range(1_000)]
    records = Counted({key: record(key, 10) for key in keys})
    assert len(rates(records, 7)) == 7
    assert records.seen == 7
