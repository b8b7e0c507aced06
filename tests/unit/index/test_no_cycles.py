"""What the index drops is free at once: it leaves nothing for the garbage collector."""

import gc
from collections.abc import Callable, Iterator

import pytest
from index_driver import KEY, DriverRules, IndexDriver

from inferencecache.index import EventType

CHAINS = [[b"%04d%04d" % (chain, number) for number in range(40)] for chain in range(30)]


@pytest.fixture
def _saved_garbage() -> Iterator[None]:
    """Keep what a collection finds in ``gc.garbage``, and collect nothing until then."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.usefixtures("_saved_garbage")
def test_ordinary_work_leaves_no_cycles(
    make_driver: Callable[..., IndexDriver], rules: DriverRules
) -> None:
    """Reports, cuts, joins, evictions, cap, quota, clears and expiry free what they drop."""
    driver = make_driver(entries_max=400)
    rules.lfu.add("t")
    for now, chain in enumerate(CHAINS, start=1):
        rules.quotas = {"t": 300} if now % 3 else {}
        driver.report(f"r{now % 3}", chain, now)
        driver.report(f"r{now % 2}", chain[:25], now)
        driver.index.credit(KEY, chain[:10], driver.depths(chain, now))
        for position in (39, 12, 0):
            driver.event(EventType.PREFIX_EVICTED, f"r{now % 3}", now, chain[position])
        if now % 10 == 0:
            driver.event(EventType.ALL_CLEARED, "r1", now)
    driver.index.sweep(len(CHAINS) + rules.ttl - 2)
    driver.index.snapshot()
    gc.collect()

    assert driver.index.entries > 0
    assert [type(item).__name__ for item in gc.garbage] == []
