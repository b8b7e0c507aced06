"""Use counts are halved once, whatever happens between the slices of a halving."""

from collections.abc import Callable

import pytest
from index_driver import KEY, DriverRules, IndexDriver

from inferencecache.index import EventType
from inferencecache.index.run import Hold

FIRST = [b"a%d" % number for number in range(5)]
SECOND = [b"b%d" % number for number in range(5)]


@pytest.fixture
def driver(make_driver: Callable[..., IndexDriver], rules: DriverRules) -> IndexDriver:
    """Give an index of an LFU tenant with two chains that were used three times."""
    rules.lfu.add("t")
    driver = make_driver(slice_blocks=1)
    driver.report("r", FIRST, 10)
    driver.report("r", SECOND, 11)
    for chain in (FIRST, SECOND) * 3:
        driver.index.credit(KEY, chain, {"r": 5})
    return driver


def uses(driver: IndexDriver, chain: list[bytes]) -> list[int]:
    """Return the use count of each block of *chain* that is held."""
    state = driver.index._ledger.tenants["t"].models["m"].scopes["vllm"].partitions[""]
    runs = [state.run_of.get(block) for block in chain]
    holds: list[Hold] = [hold for run in runs if run is not None for hold in run.holds.values()]
    return [hold.credits for hold in holds]


def test_a_hold_that_is_cut_between_slices_is_halved_in_both_parts(driver: IndexDriver) -> None:
    """Neither part keeps the count of before, and neither is halved twice."""
    slices = driver.index.halve_credits_slices()
    while uses(driver, FIRST) != [1] * 5:
        next(slices)
    assert uses(driver, SECOND) == [3] * 5

    driver.event(EventType.PREFIX_EVICTED, "r", 12, SECOND[2])
    driver.event(EventType.PREFIX_EVICTED, "r", 12, FIRST[2])
    for _ in slices:
        driver.index.check_invariants()

    assert uses(driver, FIRST) == [1] * 4
    assert uses(driver, SECOND) == [1] * 4


def test_a_use_between_slices_counts_whole(driver: IndexDriver) -> None:
    """It came after the halving began: 3 and then 1 more are 1 and 1 more."""
    slices = driver.index.halve_credits_slices()
    next(slices)
    driver.index.credit(KEY, SECOND, {"r": 5})
    driver.index.credit(KEY, SECOND, {"r": 5})
    for _ in slices:
        driver.index.check_invariants()

    assert uses(driver, FIRST) == [1] * 5
    assert uses(driver, SECOND) == [3] * 5


def test_a_halving_that_is_abandoned_is_finished_by_the_next(driver: IndexDriver) -> None:
    """Each of the two halves every count once."""
    driver.index.credit(KEY, SECOND, {"r": 5})
    next(driver.index.halve_credits_slices())
    for _ in driver.index.halve_credits_slices():
        driver.index.check_invariants()

    assert uses(driver, FIRST) == [0] * 5
    assert uses(driver, SECOND) == [1] * 5


def test_parts_of_which_one_is_halved_are_not_joined(driver: IndexDriver) -> None:
    """Counts that are equal for the moment are not alike while one is yet to be halved."""
    third = [b"c%d" % number for number in range(5)]
    driver.report("r", third, 9)
    driver.index.credit(KEY, third[:2], {"r": 2})
    for _ in range(3):
        driver.index.credit(KEY, third[2:], {"r": 3})
    slices = driver.index.halve_credits_slices()
    while uses(driver, third) != [1] * 5:
        next(slices)
    driver.report("r", third, 12)
    for _ in slices:
        driver.index.check_invariants()

    assert uses(driver, third) == [0, 0, 1, 1, 1]
