"""ALL_CLEARED of a big replica: how long the loop is held at most.

Workload: a replica with 200 k blocks in chains of 512, alone on half of them and sharing the other
half with a second replica; the event, then the reclaiming slices to the end; each slice is the
best of three tries, because one interruption by another process would hide the rest.
Seed: ``workload.SEED``. Budget: a few seconds.
"""

from collections.abc import Iterator
from time import perf_counter_ns

from benchmarks.measure import NS_PER_MS, each_us, require
from benchmarks.naive import NaiveIndex
from benchmarks.options import Options
from benchmarks.row import Bound, Row
from benchmarks.workload import (
    CHAIN_BLOCKS,
    NS_PER_S,
    START_NS,
    chain_update,
    chains,
    cleared,
    counts_of,
    new_index,
)

GONE, STAYS = "replica-0", "replica-1"


def run(options: Options) -> Iterator[Row]:
    """Yield the longest slice and the total of clearing a replica."""
    count = (20_000 if options.quick else 200_000) // CHAIN_BLOCKS
    tries = [_clear_ms(count) for _ in range(3)]
    longest_ms = max(map(min, zip(*tries, strict=True)))
    what = f"ALL_CLEARED of a replica with {count * CHAIN_BLOCKS // 1_000} k blocks"
    yield Row(
        what=f"{what}, longest slice",
        unit="ms",
        value=longest_ms,
        bound=Bound.AT_MOST,
        target=5,
        naive=_naive_ms(count),
        note=f"{len(tries[0])} slices; the event alone {tries[0][0]:.3g} ms",
    )
    yield Row(what="... all slices together", unit="ms", value=min(map(sum, tries)))


def _clear_ms(count: int) -> list[float]:
    """Return the time of the event and of each slice after it."""
    index = new_index()
    for number, chain in enumerate(chains(count)):
        index.report(chain_update(GONE, chain), START_NS + number)
        if number % 2:
            index.report(chain_update(STAYS, chain), START_NS + number)
    now_ns = START_NS + NS_PER_S
    started = perf_counter_ns()
    index.apply(cleared(GONE), now_ns)
    times = [(perf_counter_ns() - started) / NS_PER_MS]
    slices = index.reclaim_slices()
    while True:
        started = perf_counter_ns()
        more = next(slices, slices) is None
        times.append((perf_counter_ns() - started) / NS_PER_MS)
        if not more:
            break
    require(not index.has_pending_reclaim, "nothing is left to reclaim")
    require(index.entries == count // 2 * CHAIN_BLOCKS, "the other replica keeps what it holds")
    return times


def _naive_ms(count: int) -> float:
    naive = NaiveIndex()
    for chain in chains(count):
        naive.report(GONE, chain, counts_of(chain), START_NS)
    return each_us([lambda: naive.clear(GONE)])[0] / 1_000
