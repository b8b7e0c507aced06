"""What the metrics count, and what bounds them."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from inferencecache.clock import ManualClock
from inferencecache.index import PrefixIndex, StateUpdate
from inferencecache.policy import PolicySnapshot, PolicyStore, TenantQuota
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.metrics import MetricsSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.transport.metric_catalog import CATALOG, LOOKUP_LATENCY
from inferencecache.transport.metric_cells import Durations
from inferencecache.transport.metric_labels import OTHER
from inferencecache.transport.prometheus import ServerMetrics
from inferencecache.types import ReasonCode

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
NOW_NS = 1_700_000_000 * SECOND_NS


class Bench:
    """An index with metrics, and no server around them."""

    def __init__(self, *, entries_max: int = 0, **settings: int) -> None:
        self.policies = PolicyStore(PolicySettings(), default_ttl_ns=30 * MINUTE_NS)
        self.index = PrefixIndex(IndexSettings(entries_max=entries_max), self.policies)
        self.clock = ManualClock(NOW_NS)
        self.metrics = ServerMetrics(MetricsSettings(**settings), self.index, self.clock)

    def report(self, model_id: str, hashes: list[bytes], *, tenant_id: str = "t1") -> None:
        """Report single entries of one replica."""
        self.report_at(model_id, hashes, NOW_NS, tenant_id=tenant_id)

    def report_at(
        self, model_id: str, hashes: list[bytes], now_ns: int, *, tenant_id: str = "t1"
    ) -> None:
        """Report at another time."""
        update = StateUpdate(
            tenant_id=tenant_id, model_id=model_id, replica_id="a", hash_scheme="vllm"
        )
        for prefix_hash in hashes:
            update.add_prefix(prefix_hash, 64)
        self.index.report(update, now_ns)

    async def page(self) -> dict[tuple[str, tuple[str, ...]], float]:
        """Return the samples by name and label values, in the order of the label names."""
        text = (await self.metrics.render()).decode()
        return {
            (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


def look_up(bench: Bench, model_id: str, duration_ns: int = 0) -> None:
    """Count one lookup without a hint."""
    bench.metrics.lookups.lookup_finished(
        model_id, ReasonCode.NO_HINT, duration_ns, hint_used=False
    )


async def test_only_models_the_index_knows_get_a_label() -> None:
    """A client that invents models fills one series, not the metrics store."""
    bench = Bench()
    bench.report("known", [b"1"])
    for number in range(50):
        look_up(bench, f"invented-{number}")
    look_up(bench, "known")
    page = await bench.page()
    calls = "inferencecache_lookup_route_calls_total"
    assert page[calls, ("false", "known", "NO_HINT")] == 1
    assert page[calls, ("false", OTHER, "NO_HINT")] == 50
    assert len([name for name, _ in page if name == calls]) == 2


@pytest.mark.parametrize("lookups", [1, 255, 256, 257, 1_000])
async def test_every_lookup_is_counted_by_the_next_scrape(lookups: int) -> None:
    """Whether it was noted alone or as one of many, and no scrape counts it twice."""
    bench = Bench()
    bench.report("m1", [b"1"])
    for number in range(lookups):
        look_up(bench, "m1", duration_ns=number * 1_000)
    for _ in range(2):
        page = await bench.page()
        name = "inferencecache_lookup_route_latency_seconds"
        assert (
            page["inferencecache_lookup_route_calls_total", ("false", "m1", "NO_HINT")] == lookups
        )
        assert page[f"{name}_count", ("m1",)] == lookups
        assert page[f"{name}_sum", ("m1",)] == pytest.approx(sum(range(lookups)) / 1e6)


async def test_a_model_earns_its_label_with_its_first_entry() -> None:
    """What was counted before stays under the shared label; counters never move."""
    bench = Bench()
    look_up(bench, "m1")
    bench.report("m1", [b"1"])
    look_up(bench, "m1")
    page = await bench.page()
    calls = "inferencecache_lookup_route_calls_total"
    assert page[calls, ("false", OTHER, "NO_HINT")] == 1
    assert page[calls, ("false", "m1", "NO_HINT")] == 1


async def test_labels_are_bounded_in_number() -> None:
    """Models beyond the bound share a label, in lookups and in the gauge."""
    bench = Bench(labels_max=3)
    for number in range(10):
        bench.report(f"m{number}", [b"1", b"2"])
        look_up(bench, f"m{number}")
    page = await bench.page()
    entries = {
        labels: value
        for (name, labels), value in page.items()
        if name == "inferencecache_index_entries"
    }
    assert entries == {("m0",): 2, ("m1",): 2, ("m2",): 2, (OTHER,): 14}
    assert page["inferencecache_lookup_route_latency_seconds_count", (OTHER,)] == 7


async def test_a_drained_model_stays_with_zero() -> None:
    """An alert on an empty index needs the series to stay."""
    bench = Bench()
    bench.report("m1", [b"1"])
    bench.index.sweep(NOW_NS + 31 * MINUTE_NS)
    page = await bench.page()
    assert page["inferencecache_index_entries", ("m1",)] == 0
    assert page["inferencecache_index_evictions_total", ("lru", "ttl")] == 1


async def test_evictions_show_only_after_the_first() -> None:
    """Series with labels appear with their first observation; cap and quota count apart."""
    bench = Bench(entries_max=2)
    before = await bench.page()
    assert not [name for name, _ in before if "evictions" in name]
    quota = TenantQuota(tenant_id="small", max_index_entries=1)
    bench.policies.replace(PolicySnapshot(tenants=(quota,)))
    bench.report("m1", [b"1", b"2", b"3"])
    bench.report("m1", [b"1", b"2", b"3"], tenant_id="small")
    page = await bench.page()
    assert page["inferencecache_index_evictions_total", ("lru", "cap")] >= 1
    assert page["inferencecache_tenant_evictions_total", ("over_entries", "small")] == 2


async def test_drops_and_clamps_are_counted() -> None:
    """What was not stored is visible with its reason."""
    bench = Bench()
    bench.report("m1", [b"", b"1"])
    update = StateUpdate(
        tenant_id="t1",
        model_id="m1",
        replica_id="a",
        hash_scheme="vllm",
        timestamp_ns=NOW_NS + MINUTE_NS,
    )
    update.add_prefix(b"9", 16)
    bench.index.report(update, NOW_NS)
    page = await bench.page()
    assert page["inferencecache_ingest_timestamps_clamped_total", ()] == 1
    assert page["inferencecache_ingest_fenced_updates_total", ()] == 0
    assert (
        sum(v for (name, _), v in page.items() if name == "inferencecache_ingest_dropped_total")
        == 1
    )


async def test_what_the_transport_counts_is_shown() -> None:
    """Messages, events, failures, sweeps and the loop's lag have their series."""
    bench = Bench()
    bench.metrics.update_received(3, None)
    bench.metrics.event_received("ALL_CLEARED")
    bench.metrics.message_unparsable("LookupRoute")
    bench.metrics.handler_failed("PublishEvent")
    bench.metrics.sweep_finished(2_000_000)
    bench.metrics.loop_lagged(0)
    page = await bench.page()
    assert page["inferencecache_ingest_updates_total", ()] == 1
    assert page["inferencecache_ingest_entries_total", ()] == 3
    assert page["inferencecache_ingest_events_total", ("ALL_CLEARED",)] == 1
    assert page["inferencecache_grpc_unparsable_messages_total", ("LookupRoute",)] == 1
    assert page["inferencecache_grpc_handler_errors_total", ("PublishEvent",)] == 1
    assert page["inferencecache_index_sweep_duration_seconds_sum", ()] == 0.002
    assert page["inferencecache_event_loop_lag_seconds_count", ()] == 1


async def test_the_latency_buckets_are_the_contracts() -> None:
    """Ten bounds from 0.1 to 100 ms; an observation on a bound belongs below it."""
    bench = Bench()
    bench.report("m", [b"1"])
    for duration_ns in (0, 100_000, 100_001, 99_000_000, 5 * SECOND_NS):
        look_up(bench, "m", duration_ns)
    page = await bench.page()
    name = "inferencecache_lookup_route_latency_seconds_bucket"
    bounds = [labels[0] for (found, labels) in page if found == name]
    assert bounds == [*map(str, LOOKUP_LATENCY.buckets_seconds), "+Inf"]
    assert page[name, ("0.0001", "m")] == 2
    assert page[name, ("0.00025", "m")] == 3
    assert page[name, ("0.1", "m")] == 4
    assert page[name, ("+Inf", "m")] == 5


async def test_reserved_tenants_stay_out_of_the_gauges() -> None:
    """The self-test leaves no trace on the metrics page's index numbers."""
    bench = Bench()
    bench.report("m1", [b"1"], tenant_id="inferencecache.io/probe")
    page = await bench.page()
    assert page["inferencecache_index_held_entries", ()] == 0
    assert ("inferencecache_index_entries", ("m1",)) not in page


@pytest.mark.parametrize("bounds", [(), (1.0,), (0.5, 1.0, 2.0)])
def test_every_duration_lands_in_exactly_one_bucket(bounds: tuple[float, ...]) -> None:
    """Counts add up to the number of observations."""
    durations = Durations(bounds)
    for tenths in range(40):
        durations.observe(tenths * SECOND_NS // 10)
    spread = durations.spread()
    assert len(spread.counts) == len(bounds) + 1
    assert sum(spread.counts) == 40
    assert spread.sum_ns == sum(tenths * SECOND_NS // 10 for tenths in range(40))


async def test_models_that_come_later_get_the_labels_of_those_gone() -> None:
    """A fleet that changes its models sees today's, and the page never grows beyond its bound."""
    bench = Bench(labels_max=3)
    now_ns = NOW_NS
    for generation in range(5):
        models = [f"g{generation}-{number}" for number in range(3)]
        for model_id in models:
            bench.report_at(model_id, [b"1"], now_ns)
            look_up(bench, model_id)
        await bench.page()
        bench.clock.advance_ns(31 * MINUTE_NS)
        await bench.page()
        for model_id in models:
            look_up(bench, model_id)
        page = await bench.page()
        entries = {
            label[0]: value
            for (name, label), value in page.items()
            if name == "inferencecache_index_entries"
        }
        counts = {
            label[0]: value
            for (name, label), value in page.items()
            if name == "inferencecache_lookup_route_latency_seconds_count"
        }
        assert {model_id: entries.get(model_id) for model_id in models} == dict.fromkeys(models, 1)
        assert len(entries) <= 4
        assert set(models) <= set(counts) <= {*models, OTHER}
        now_ns += 31 * MINUTE_NS
        bench.index.sweep(now_ns)
        await bench.page()


def test_histograms_have_rising_bounds() -> None:
    """A histogram of the catalogue has bounds, others have none."""
    for spec in CATALOG:
        assert list(spec.buckets_seconds) == sorted(set(spec.buckets_seconds))
        assert bool(spec.buckets_seconds) == (spec.kind == "histogram")


async def test_lag_is_measured_for_updates_that_bear_a_time() -> None:
    """The future counts as no lag; without a timestamp there is nothing to measure."""
    bench = Bench()
    for lag_ns in (None, -SECOND_NS, SECOND_NS):
        bench.metrics.update_received(1, lag_ns)
    page = await bench.page()
    assert page["inferencecache_ingest_lag_seconds_count", ()] == 2
    assert page["inferencecache_ingest_lag_seconds_sum", ()] == 1


async def test_a_lag_that_cannot_be_spoils_no_sum() -> None:
    """A stamp of another unit shows as a long lag, beyond the last bucket, and not as centuries."""
    bench = Bench(ingest_lag_max_ns=90 * SECOND_NS)
    for lag_ns in (SECOND_NS, 2**63 * 1_000, -(2**63) * 1_000):
        bench.metrics.update_received(1, lag_ns)
    page = await bench.page()
    assert page["inferencecache_ingest_lag_seconds_count", ()] == 3
    assert page["inferencecache_ingest_lag_seconds_bucket", ("60.0",)] == 2
    assert page["inferencecache_ingest_lag_seconds_sum", ()] == 91
