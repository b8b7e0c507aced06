"""What must not get slower as the index grows: eviction, new blocks at the cap, idle sweeps.

Workload: indexes of 10 k, 100 k and 1 M blocks in chains of 512 with one holder each out of eight
replicas, 15, 3 and one of each size, because a small one has room for a few operations only; once
freshly built and once after an hour of churn (``workload.churned``). Tail and head: blocks evicted
one by one from the end, or the start, of chains. Middle: one block out of the middle of each chain.
New block at the cap: chains of 512 into a full index, time per block, so each evicts 512; and
reports of a single block. Sweep: nothing is due. The median index counts. Seed: ``workload.SEED``.
Budget: about a minute for 1 M, most of it building.
"""

import statistics
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.measure import each_us, median_us, require
from benchmarks.naive import NaiveIndex
from benchmarks.options import Options
from benchmarks.row import Bound, Row
from benchmarks.workload import (
    CHAIN_BLOCKS,
    NS_PER_S,
    SEED,
    START_NS,
    TTL_NS,
    Chain,
    Filled,
    chain_update,
    chains,
    churned,
    counts_of,
    evicted,
    filled,
)

FLAT_RATIO_MAX = 1.5
_CHAINS_MAX = 8
_INDEXES_MAX = 15
_BLOCKS_TIMED = 300_000

Times = dict[str, float]
"""Microseconds by operation."""

TAIL = "PREFIX_EVICTED, tail of a run"
HEAD = "PREFIX_EVICTED, head of a run"
MIDDLE = "PREFIX_EVICTED, middle of a run"
CAP_CHAIN = "new block at the cap, 512 a report, per block"
CAP_SINGLE = "new block at the cap, one a report"
SWEEP = "sweep with nothing due"

TARGETS_US = {TAIL: 5, HEAD: 5, MIDDLE: 30, CAP_CHAIN: 5, CAP_SINGLE: None, SWEEP: 100}
FLAT = frozenset({TAIL, HEAD, CAP_CHAIN})


def run(options: Options) -> Iterator[Row]:
    """Yield a row per operation and state, and its growth from the smallest to the largest."""
    naive = _naive_times(options.blocks_max)
    builders: dict[str, Callable[[int], Filled]] = {
        "fresh": partial(filled, capped=True),
        "after an hour of churn": churned,
    }
    for state, build in builders.items():
        by_size = {size: _median_times(build, size, options) for size in options.sizes}
        for operation, target_us in TARGETS_US.items():
            yield from _rows(state, operation, target_us, by_size, naive)


def _rows(
    state: str,
    operation: str,
    target_us: float | None,
    by_size: dict[int, Times],
    naive: Times,
) -> Iterator[Row]:
    smallest, *_, largest = by_size
    times = {size: found[operation] for size, found in by_size.items()}
    yield Row(
        what=f"{operation}, {_size(largest)} blocks, {state}",
        unit="us",
        value=times[largest],
        bound=Bound.AT_MOST,
        target=target_us,
        naive=naive.get(operation),
        note=", ".join(f"{_size(size)}: {us:.3g}" for size, us in times.items()),
    )
    yield Row(
        what=f"... its time at {_size(largest)} / at {_size(smallest)}",
        unit="x",
        value=times[largest] / times[smallest],
        bound=Bound.AT_MOST,
        target=FLAT_RATIO_MAX if operation in FLAT else None,
    )


def _size(blocks: int) -> str:
    return f"{blocks // 1_000_000} M" if blocks >= 1_000_000 else f"{blocks // 1_000} k"


def _median_times(build: Callable[[int], Filled], blocks: int, options: Options) -> Times:
    """Time several indexes of one size; the median index counts for each operation."""
    indexes = max(1, min(_INDEXES_MAX, _BLOCKS_TIMED // blocks))
    times = [_times(build(blocks), blocks, options) for _ in range(indexes)]
    return {what: statistics.median(each[what] for each in times) for what in times[0]}


def _times(state: Filled, blocks: int, options: Options) -> Times:
    times = {SWEEP: median_us(partial(state.index.sweep, state.now_ns), options.budget_s)}
    times[CAP_CHAIN] = statistics.median(each_us(_new_chains(state))) / CHAIN_BLOCKS
    times[CAP_SINGLE] = statistics.median(each_us(_new_singles(state)))
    newest = state.chains[: -(blocks // CHAIN_BLOCKS // 2) : -1]
    share = len(newest) // 3
    for operation, position in ((TAIL, -1), (HEAD, 0)):
        chosen = [newest.pop() for _ in range(share)][:_CHAINS_MAX]
        times[operation] = statistics.median(each_us(_evict_ends(state, chosen, position)))
    times[MIDDLE] = statistics.median(each_us(_evict_middles(state, newest)))
    state.index.check_invariants()
    return times


def _new_chains(state: Filled) -> Iterator[Callable[[], object]]:
    before = state.index.entries
    count = max(4, len(state.chains) // 8)
    for number, chain in enumerate(chains(min(count, 100), seed=SEED + 4)):
        update = chain_update(f"replica-{number % 8}", chain)
        yield partial(state.index.report, update, state.now_ns + number)
    require(abs(state.index.entries - before) <= CHAIN_BLOCKS, "the cap holds")


def _new_singles(state: Filled) -> Iterator[Callable[[], object]]:
    (chain,) = chains(1, seed=SEED + 5)
    for number, block_hash in enumerate(chain):
        update = chain_update(f"replica-{number % 8}", [block_hash])
        yield partial(state.index.report, update, state.now_ns + 1_000 + number)


def _evict_ends(
    state: Filled, held: list[tuple[str, Chain]], position: int
) -> Iterator[Callable[[], object]]:
    """Evict half of each chain, block by block from one end."""
    before, events = state.index.entries, 0
    for replica_id, chain in held:
        blocks = chain[: CHAIN_BLOCKS // 2] if position == 0 else chain[: CHAIN_BLOCKS // 2 : -1]
        for block_hash in blocks:
            events += 1
            yield partial(state.index.apply, evicted(replica_id, block_hash), state.now_ns)
    require(state.index.entries == before - events, "every event removed one entry")


def _evict_middles(state: Filled, held: list[tuple[str, Chain]]) -> Iterator[Callable[[], object]]:
    before, events = state.index.entries, 0
    for replica_id, chain in held:
        events += 1
        event = evicted(replica_id, chain[CHAIN_BLOCKS // 2 - events % 50])
        yield partial(state.index.apply, event, state.now_ns)
    require(state.index.entries == before - events, "every event removed one entry")


def _naive_times(blocks: int) -> Times:
    """Time the plain model at the largest size; what scans is timed three times only."""
    naive = NaiveIndex()
    held = list(chains(blocks // CHAIN_BLOCKS))
    counts = counts_of(held[0])
    for number, chain in enumerate(held):
        naive.report("replica-0", chain, counts, START_NS + number)
    (fresh,) = chains(1, seed=SEED + 4)

    def new_block(block_hash: bytes) -> None:
        naive.report("replica-0", [block_hash], counts[:1], START_NS + NS_PER_S)
        naive.evict_oldest()

    sweep = partial(naive.sweep, START_NS - TTL_NS)
    scans = statistics.median(each_us(partial(new_block, key) for key in fresh[:3]))
    evictions = statistics.median(
        each_us(partial(naive.evict, "replica-0", key) for key in held[-1][::-1])
    )
    return {
        TAIL: evictions,
        HEAD: evictions,
        MIDDLE: evictions,
        CAP_CHAIN: scans,
        CAP_SINGLE: scans,
        SWEEP: statistics.median(each_us([sweep] * 3)),
    }
