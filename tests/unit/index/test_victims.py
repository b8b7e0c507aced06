"""Which entries go first, and that limits hold exactly."""

from collections.abc import Callable, Iterator
from itertools import pairwise

from index_driver import DriverRules, IndexDriver

from inferencecache.index import (
    EventType,
    EvictionReason,
    IndexEvent,
    IndexSnapshot,
    StateUpdate,
)
from inferencecache.index.tenancy import DRAINED_MODELS_MAX
from inferencecache.types import EvictionAlgorithm, PartitionKey, StatsReport

KEY = PartitionKey("t", "m", "vllm", "")
OLD = [b"o1", b"o2", b"o3", b"o4"]
NEW = [b"n1", b"n2"]


def test_cap_takes_the_deepest_blocks_of_the_oldest_hold(
    make_driver: Callable[..., IndexDriver],
) -> None:
    """Exactly as many go as are over the cap, from the end of the oldest chain."""
    driver = make_driver(entries_max=5)
    driver.report("A", OLD, 10)
    driver.report("A", NEW, 20)

    assert driver.index.entries == 5
    assert driver.depths(OLD, 21) == {"A": 3}
    assert driver.depths(NEW, 21) == {"A": 2}
    assert driver.index.counters.evictions == {(EvictionAlgorithm.LRU, EvictionReason.CAP): 1}


def test_equal_ages_go_from_the_end_of_what_was_reported_last(
    driver: IndexDriver, rules: DriverRules
) -> None:
    """A batch a, b, c, d at one stamp under a quota of 2 keeps a and b."""
    rules.quotas["t"] = 2
    driver.report("A", [b"a", b"b", b"c", b"d"], 10)

    assert driver.depths([b"a", b"b", b"c", b"d"], 11) == {"A": 2}
    assert driver.index.counters.tenant_evictions == {"t": 2}


def test_quota_removes_whole_keys_by_their_newest_holder(
    driver: IndexDriver, rules: DriverRules
) -> None:
    """A key is as old as its freshest holder, and goes from all holders at once."""
    rules.quotas["t"] = 2
    driver.report("A", [b"a"], 10)
    driver.report("A", [b"b"], 11)
    driver.report("B", [b"a"], 12)
    driver.report("A", [b"c"], 13)

    assert driver.depths([b"a"], 14) == {"A": 1, "B": 1}
    assert driver.depths([b"b"], 14) == {}


def test_a_quota_set_later_acts_at_the_next_update(driver: IndexDriver, rules: DriverRules) -> None:
    """A lowered quota waits for the tenant's next update, even an empty one."""
    driver.report("A", OLD, 10)
    rules.quotas["t"] = 1
    assert driver.index.prefixes == 4

    driver.report("A", OLD[:1], 11)

    assert driver.index.prefixes == 1
    assert driver.depths(OLD, 12) == {"A": 1}


def test_lfu_spares_what_was_used(
    make_driver: Callable[..., IndexDriver], rules: DriverRules
) -> None:
    """Under LFU a used old entry outlives an unused newer one; without LFU it does not."""
    rules.lfu.add("t")
    driver = make_driver(entries_max=3)
    driver.report("A", OLD[:2], 10)
    driver.index.credit(KEY, OLD[:2], {"A": 2})
    driver.report("A", [b"x"], 20)
    driver.report("A", [b"y"], 30)
    assert driver.depths(OLD[:2], 31) == {"A": 2}
    assert driver.depths([b"x"], 31) == {}

    rules.lfu.clear()
    rules.revision += 1
    driver.report("A", [b"z"], 40)

    assert driver.depths(OLD[:2], 41) == {"A": 1}
    assert driver.depths([b"y"], 41) == {"A": 1}


def test_lfu_spares_a_tenant_whose_entries_were_all_used(
    make_driver: Callable[..., IndexDriver], rules: DriverRules
) -> None:
    """The cap takes from another tenant rather than from one with used entries only."""
    rules.lfu.add("t")
    driver = make_driver(entries_max=2)
    driver.report("A", OLD[:1], 10)
    driver.index.credit(KEY, OLD[:1], {"A": 1})
    driver.report("A", [b"x"], 20, tenant="other")
    driver.report("A", [b"y"], 30, tenant="other")

    assert driver.depths(OLD[:1], 31) == {"A": 1}
    assert driver.index.tenant_prefixes() == {"t": 1, "other": 1}


def test_cap_holds_when_an_update_is_used_before_it_ends(
    make_driver: Callable[..., IndexDriver], rules: DriverRules
) -> None:
    """The oldest used entries go if lookups used every block between two slices."""
    rules.lfu.add("t")
    driver = make_driver(entries_max=2, slice_blocks=4)
    update = StateUpdate(tenant_id="t", model_id="m", replica_id="A", hash_scheme="vllm")
    update.add_chain(OLD, [16] * 4)
    update.add_chain(NEW, [16] * 2)
    slices = driver.index.report_slices(update, 10)
    next(slices)
    driver.index.credit(KEY, OLD, {"A": 4})
    for _ in slices:
        driver.index.credit(KEY, NEW, {"A": 2})
    driver.index.check_invariants()

    assert driver.index.entries == 2


def test_halving_makes_used_entries_victims_again(
    make_driver: Callable[..., IndexDriver], rules: DriverRules
) -> None:
    """A single use is forgotten after one halving."""
    rules.lfu.add("t")
    driver = make_driver(entries_max=2)
    driver.report("A", OLD[:1], 10)
    driver.index.credit(KEY, OLD[:1], {"A": 1})
    for _ in driver.index.halve_credits_slices():
        pass
    driver.report("A", [b"x"], 20)
    driver.report("A", [b"y"], 30)

    assert driver.depths(OLD[:1], 31) == {}


def test_cleared_replica_counts_for_nothing_while_it_is_reclaimed(
    make_driver: Callable[..., IndexDriver],
) -> None:
    """ALL_CLEARED is true at once, however long reclaiming takes."""
    driver = make_driver(slice_blocks=1)
    chains = [[bytes((65 + chain, 48 + block)) for block in range(4)] for chain in range(5)]
    for now, chain in enumerate(chains, start=10):
        driver.report("A", chain, now)
        driver.report("B", chain[:1], now)
    driver.event(EventType.ALL_CLEARED, "A", 20)

    assert driver.index.has_pending_reclaim
    assert driver.index.entries == 5
    assert all(driver.depths(chain, 21) == {"B": 1} for chain in chains)
    driver.report("A", chains[0], 22)
    assert driver.depths(chains[0], 23) == {"A": 4, "B": 1}

    while driver.index.has_pending_reclaim:
        next(driver.index.reclaim_slices(), None)
        driver.index.check_invariants()
    assert driver.index.prefixes == 8
    assert driver.depths(chains[0], 24) == {"A": 4, "B": 1}


def test_sweep_in_slices_expires_everything_due(make_driver: Callable[..., IndexDriver]) -> None:
    """What is as old as the TTL goes, slice by slice; what is younger stays."""
    driver = make_driver(slice_blocks=2)
    driver.report("A", OLD, 10)
    driver.report("A", NEW, 11)

    slices = 0
    for _ in driver.index.sweep_slices(1_010):
        slices += 1
        driver.index.check_invariants()

    assert slices >= 1
    assert driver.index.prefixes == 2
    assert driver.index.counters.evictions == {(EvictionAlgorithm.LRU, EvictionReason.TTL): 4}


def test_drained_models_stay_in_the_gauge_in_bounded_number(driver: IndexDriver) -> None:
    """A model without keys shows 0, but a stream of made-up models is forgotten."""
    for number in range(DRAINED_MODELS_MAX + 5):
        update = StateUpdate(
            tenant_id="t", model_id=f"m{number}", replica_id="A", hash_scheme="vllm"
        )
        update.add_prefix(b"p", 16)
        driver.index.report(update, 10 + number)
    driver.index.sweep(3_000)

    assert len(driver.index.prefixes_by_model) == DRAINED_MODELS_MAX
    assert driver.index.prefixes_by_model["m1004"] == 0
    assert "m0" not in driver.index.prefixes_by_model


def test_tenants_that_come_and_go_leave_nothing_behind(driver: IndexDriver) -> None:
    """A tenant drained by eviction is forgotten, far below the cap."""
    for number in range(100):
        driver.report("A", [b"x"], 10 + number, tenant=f"t{number}")
        driver.index.apply(
            IndexEvent(
                type=EventType.PREFIX_EVICTED,
                tenant_id=f"t{number}",
                model_id="m",
                replica_id="A",
                prefix_hash=b"x",
            ),
            10 + number,
        )

    assert driver.index._ledger.heads() == []
    assert driver.index._ledger.tenants == {}


def test_a_new_quota_takes_effect_in_slices(
    make_driver: Callable[..., IndexDriver], rules: DriverRules
) -> None:
    """A quota far below what is held is kept step by step, and exactly in the end."""
    driver = make_driver(slice_blocks=10)
    for number in range(100):
        driver.report("A", [b"%d" % number], 10 + number)
    rules.quotas["t"] = 5
    empty = StateUpdate(tenant_id="t", model_id="m", replica_id="A", hash_scheme="vllm")

    held = [driver.index.prefixes for _ in driver.index.report_slices(empty, 200)]

    assert len(held) > 10
    assert max(one - other for one, other in pairwise(held)) <= 10
    assert driver.index.prefixes == 5
    assert driver.depths([b"99"], 200) == {"A": 1}
    driver.index.check_invariants()


def test_the_cap_is_reached_in_slices_after_a_huge_update(
    make_driver: Callable[..., IndexDriver],
) -> None:
    """What one update puts over the cap goes again step by step, and exactly down to the cap."""
    driver = make_driver(entries_max=20, slice_blocks=10)
    update = StateUpdate(tenant_id="t", model_id="m", replica_id="A", hash_scheme="vllm")
    update.add_chain([b"%03d" % number for number in range(200)], [16] * 200)

    held = [driver.index.entries for _ in driver.index.report_slices(update, 10)]

    assert max(abs(one - other) for one, other in pairwise(held)) <= 10
    assert driver.index.entries == 20


def test_sweep_reclaims_what_cleared_replicas_held(make_driver: Callable[..., IndexDriver]) -> None:
    """Whoever only sweeps gets the memory of cleared replicas back, too."""
    driver = make_driver(slice_blocks=1)
    for number in range(5):
        driver.report("A", [b"%d" % number], 10 + number)
    driver.event(EventType.ALL_CLEARED, "A", 20)
    driver.index.sweep(21)

    assert not driver.index.has_pending_reclaim
    assert driver.index.prefixes == 0


def test_a_snapshot_in_slices_is_the_snapshot(driver: IndexDriver) -> None:
    """Many tenants are shown step by step, sorted, with the same rows and total."""
    for number in range(600):
        update = StateUpdate(
            tenant_id=f"t{number:03d}", model_id="m", replica_id="A", hash_scheme="vllm"
        )
        update.add_prefix(b"x", 16)
        driver.index.report(update, 10)
    shown: list[IndexSnapshot] = []

    def keep() -> Iterator[None]:
        shown.append((yield from driver.index.snapshot_slices()))

    assert len(list(keep())) >= 4
    assert shown == [driver.index.snapshot()]
    assert [row.tenant_id for row in shown[0].tenants] == sorted(
        f"t{number:03d}" for number in range(600)
    )


def test_a_tenant_with_nothing_but_statistics_is_swept_after_its_blocks_were_used(
    driver: IndexDriver, rules: DriverRules
) -> None:
    """No hold is left, used or not, and that is no error."""
    rules.lfu.add("t")
    update = StateUpdate(tenant_id="t", model_id="m", replica_id="A", hash_scheme="vllm")
    update.add_chain(OLD, [16] * len(OLD))
    update.stats = StatsReport(cache_memory_bytes=1, hit_rate=0.5, pressure=0.5)
    driver.index.report(update, 10)
    driver.index.credit(KEY, OLD, {"A": len(OLD)})
    for block in OLD:
        driver.event(EventType.PREFIX_EVICTED, "A", 11, block)

    driver.index.sweep(12)
    assert list(driver.index.stats_of("t", "m")) == ["A"]
    driver.index.sweep(10 + rules.ttl)
    assert not driver.index.stats_of("t", "m")
