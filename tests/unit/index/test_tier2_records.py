"""Statistics of replicas whose offload tier is asked, kept apart from all others."""

from index_driver import IndexDriver

from inferencecache.index import EventType, IndexEvent, StateUpdate
from inferencecache.types import PROBE_TENANT_ID, StatsReport

MINUTE_NS = 60 * 1_000_000_000


def report_stats(
    driver: IndexDriver, replica_id: str, queries: int, now_ns: int, tenant_id: str = "t"
) -> None:
    """Report nothing but the counters of an offload tier."""
    update = StateUpdate(
        tenant_id=tenant_id, model_id="m", replica_id=replica_id, hash_scheme="vllm"
    )
    update.stats = StatsReport(t2_query_tokens=queries)
    driver.index.report(update, now_ns)
    driver.index.check_invariants()


def asked(driver: IndexDriver) -> list[str]:
    """Return the replicas among the records."""
    return [replica_id for _, _, replica_id in driver.index.tier2_records]


def test_only_tiers_that_are_asked_are_there(driver: IndexDriver) -> None:
    """The latest report decides."""
    for replica_id, queries in (("a", 10), ("b", 0), ("c", 5), ("d", -3)):
        report_stats(driver, replica_id, queries, 10)
    assert asked(driver) == ["a", "c"]

    report_stats(driver, "b", 1, 11)
    report_stats(driver, "a", 0, 11)
    report_stats(driver, "c", 6, 11)
    assert asked(driver) == ["c", "b"]
    assert driver.index.tier2_records["t", "m", "c"].stats.t2_query_tokens == 6


def test_who_is_cleared_or_expires_leaves(driver: IndexDriver) -> None:
    """The records go with the statistics they are."""
    report_stats(driver, "a", 10, 10)
    report_stats(driver, "b", 10, 20)
    cleared = IndexEvent(
        type=EventType.ALL_CLEARED, tenant_id="t", model_id="m", replica_id="a", timestamp_ns=30
    )
    driver.index.apply(cleared, 30)
    assert asked(driver) == ["b"]

    driver.index.sweep(600 * MINUTE_NS)
    driver.index.check_invariants()
    assert asked(driver) == []


def test_the_reserved_tenant_is_in_no_record(driver: IndexDriver) -> None:
    """Self-tests show nowhere."""
    report_stats(driver, "a", 10, 10, tenant_id=PROBE_TENANT_ID)
    assert asked(driver) == []
