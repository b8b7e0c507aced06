"""What one slice does is bounded in holds as well as in blocks.

A message may be a million chains of two blocks. Handling a hold costs more than its blocks then,
and a slice that only counted blocks would hold up lookups for as long as a thousand holds take.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from index_driver import DriverRules, IndexDriver

from inferencecache.index import DropReason, EventType, IndexEvent, StateUpdate

SLICE_BLOCKS = 90
CHAINS = [[b"%04d" % number, b"+%03d" % number] for number in range(60)]
STORED_MAX, REMOVED_MAX = 3, 5
"""Holds in a slice: storing one is as much work as 32 blocks besides its own 2, removing one as 16.
By blocks alone there were 45."""


def many_chains(tokens: int = 16) -> StateUpdate:
    """Return one report of many short chains, which no run can have together."""
    update = StateUpdate(tenant_id="t", model_id="m", replica_id="r", hash_scheme="vllm")
    for chain in CHAINS:
        update.add_chain(chain, [tokens] * len(chain))
    return update


def changes(driver: IndexDriver, slices: Iterator[None]) -> list[int]:
    """Return how many holds each slice added or took."""
    seen = [driver.index.prefixes // 2]
    seen += [driver.index.prefixes // 2 for _ in slices]
    seen += [driver.index.prefixes // 2]
    driver.index.check_invariants()
    return [abs(after - before) for before, after in pairwise(seen)]


@pytest.fixture
def driver(make_driver: Callable[..., IndexDriver]) -> IndexDriver:
    """Give an index with small slices."""
    return make_driver(slice_blocks=SLICE_BLOCKS)


def test_report(driver: IndexDriver) -> None:
    """New holds come a few at a time."""
    taken = changes(driver, driver.index.report_slices(many_chains(), 10))

    assert sum(taken) == len(CHAINS)
    assert max(taken) == STORED_MAX


def test_report_at_the_cap(make_driver: Callable[..., IndexDriver]) -> None:
    """What gives way goes a few holds at a time, after all that is new has come."""
    driver = make_driver(slice_blocks=SLICE_BLOCKS, entries_max=2)
    taken = changes(driver, driver.index.report_slices(many_chains(), 10))

    assert driver.index.entries == 2
    assert sum(taken) == 2 * len(CHAINS) - 1
    assert max(taken) == REMOVED_MAX


def test_quota(driver: IndexDriver, rules: DriverRules) -> None:
    """Likewise for a tenant's own limit."""
    driver.index.report(many_chains(), 10)
    rules.quotas["t"] = 2
    update = StateUpdate(tenant_id="t", model_id="m", replica_id="r", hash_scheme="vllm")
    taken = changes(driver, driver.index.report_slices(update, 10))

    assert driver.index.prefixes == 2
    assert max(taken) == REMOVED_MAX


def test_expiry(driver: IndexDriver, rules: DriverRules) -> None:
    """What has expired goes a few holds at a time."""
    driver.index.report(many_chains(), 10)
    taken = changes(driver, driver.index.sweep_slices(10 + rules.ttl))

    assert sum(taken) == len(CHAINS)
    assert max(taken) == REMOVED_MAX


def test_clear(driver: IndexDriver) -> None:
    """What a cleared replica held is reclaimed a few holds at a time, the first ones at once."""
    driver.index.report(many_chains(), 10)
    driver.event(EventType.ALL_CLEARED, "r", 11)
    assert len(CHAINS) - driver.index.prefixes // 2 == REMOVED_MAX

    taken = changes(driver, driver.index.reclaim_slices())
    assert sum(taken) == len(CHAINS) - REMOVED_MAX
    assert max(taken) == REMOVED_MAX


def test_chains_of_one_block_are_stored_together(driver: IndexDriver) -> None:
    """They say what single prefixes say, and make one run, not one each."""
    update = StateUpdate(tenant_id="t", model_id="m", replica_id="r", hash_scheme="vllm")
    for number, (block, _) in enumerate(CHAINS, start=1):
        update.add_chain([block], [16 * number])
    driver.index.report(update, 10)
    driver.index.check_invariants()

    assert driver.depths([block for block, _ in CHAINS], 11) == {"r": len(CHAINS)}
    assert len(update.stretches) == 1
    assert (update.entries, driver.index.entries) == (len(CHAINS), len(CHAINS))


@pytest.mark.parametrize("at_slice", [1, 2, 5])
def test_a_clear_between_two_slices_ends_the_report(driver: IndexDriver, at_slice: int) -> None:
    """What it still had is older than the clear, whatever came of it before."""
    update = many_chains()
    update.timestamp_ns = 1_000
    slices = driver.index.report_slices(update, 2_000)
    for _ in range(at_slice):
        next(slices)
    assert 0 < driver.index.entries < 2 * len(CHAINS)
    driver.index.apply(
        IndexEvent(
            type=EventType.ALL_CLEARED,
            tenant_id="t",
            model_id="m",
            replica_id="r",
            timestamp_ns=1_500,
        ),
        2_000,
    )
    assert driver.index.entries == 0
    for _ in slices:
        pass

    assert driver.index.entries == 0
    assert driver.index.counters.fenced_updates == 1
    assert driver.index.counters.drops == {DropReason.BEFORE_CLEAR: len(CHAINS)}
    driver.index.check_invariants()


def test_a_clear_that_is_older_than_the_report_does_not_end_it(driver: IndexDriver) -> None:
    """Only what it had stored before is gone, as it was reported before the clear came."""
    update = many_chains()
    update.timestamp_ns = 1_000
    slices = driver.index.report_slices(update, 2_000)
    next(slices)
    stored = driver.index.entries
    driver.index.apply(
        IndexEvent(
            type=EventType.ALL_CLEARED,
            tenant_id="t",
            model_id="m",
            replica_id="r",
            timestamp_ns=1_000,
        ),
        2_000,
    )
    for _ in slices:
        pass

    assert driver.index.entries == 2 * len(CHAINS) - stored
    assert driver.index.counters.fenced_updates == 0
