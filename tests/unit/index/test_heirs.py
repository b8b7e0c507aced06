"""An eviction in the middle leaves the slots of what it cuts off, and lookups follow them."""

import random
from collections.abc import Callable

import pytest
from index_driver import IndexDriver

from inferencecache.index import EventType
from inferencecache.index.block_table import BlockTable
from inferencecache.index.run import HEIRS_MAX

CHAIN = [b"%03d" % number for number in range(200)]


@pytest.fixture
def driver(make_driver: Callable[..., IndexDriver]) -> IndexDriver:
    """Give an index with one chain of one replica."""
    driver = make_driver()
    driver.report("r", CHAIN, 10)
    return driver


def table(driver: IndexDriver) -> BlockTable:
    """Return which run each block is in."""
    return driver.index._ledger.tenants["t"].models["m"].scopes["vllm"].partitions[""].run_of


def evict(driver: IndexDriver, *positions: int) -> None:
    """Evict blocks of the chain."""
    for position in positions:
        driver.event(EventType.PREFIX_EVICTED, "r", 11, CHAIN[position])


def held(driver: IndexDriver) -> list[list[bytes]]:
    """Return the stretches that are held, as lookups find them."""
    found = []
    at = 0
    while at < len(CHAIN):
        depth = driver.depths(CHAIN[at:], 12).get("r", 0)
        found += [CHAIN[at : at + depth]] if depth else []
        at += depth + 1
    return found


def test_no_slot_is_written(driver: IndexDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost does not grow with what is cut off."""
    moved: list[int] = []
    monkeypatch.setattr(BlockTable, "move", lambda _, hashes, *__: moved.append(len(hashes)))
    evict(driver, 90)

    assert moved == []
    assert held(driver) == [CHAIN[:90], CHAIN[91:]]
    assert {len(run.hashes()) for run in table(driver).runs()} == {90, 109}


@pytest.mark.parametrize("at", [60, 140])
def test_an_heir_outlives_its_root(driver: IndexDriver, at: int) -> None:
    """When the root's own blocks are gone, its slots still lead to the heir; then to nothing."""
    evict(driver, at)
    (heir,) = [run for run in table(driver).runs() if run.root is not None]
    root = heir.root
    assert root is not None
    left = set(heir.hashes())
    evict(driver, *(n for n, block in enumerate(CHAIN) if n != at and block not in left))

    assert root.length == 0
    assert held(driver) == [[block for block in CHAIN if block in left]]
    evict(driver, *(n for n, block in enumerate(CHAIN) if block in left))
    assert (root.heirs, heir.root) == (None, None)
    assert driver.index.is_empty()


def test_heirs_are_few(driver: IndexDriver) -> None:
    """A run that was cut often has its slots written, and everything is found all the same."""
    rng = random.Random(1)
    gone = rng.sample(range(20, 180), 12)
    evict(driver, *gone)

    runs = table(driver).runs()
    assert len(runs) > 2 * HEIRS_MAX
    assert max(len(run.heirs or ()) for run in runs) == HEIRS_MAX
    kept = [block for number, block in enumerate(CHAIN) if number not in gone]
    assert [block for stretch in held(driver) for block in stretch] == kept


def test_what_was_cut_is_one_again_after_a_report(driver: IndexDriver) -> None:
    """Reported whole, the chain is whole, whoever names what."""
    evict(driver, 90, 40, 150)
    driver.report("r", CHAIN, 12)

    assert driver.depths(CHAIN, 13) == {"r": len(CHAIN)}
    assert [run.length for run in table(driver).runs()] == [len(CHAIN)]


def test_an_heir_that_was_joined_is_cut_again(driver: IndexDriver) -> None:
    """Blocks that an heir takes over are found through its root like its own."""
    evict(driver, 90, *range(199, 169, -1))
    driver.report("r", CHAIN[:170], 12)
    (joined,) = table(driver).runs()
    assert joined.root is not None
    evict(driver, 120)

    assert held(driver) == [CHAIN[:120], CHAIN[121:170]]
