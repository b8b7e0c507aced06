"""Use counts under LFU: credit the blocks behind a delivered hint.

A hit credits a leading part of what a replica holds, so runs are cut where that part ends: then a
use count, like age and tier, belongs to a whole hold. LRU tenants never come here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from inferencecache.index.ages import TenantAges
from inferencecache.index.packing import OVERHEAD, common_blocks, pack
from inferencecache.index.partition import Partition
from inferencecache.index.run import HOLD_WORK, Hold, Incarnation, Run
from inferencecache.index.store import carve
from inferencecache.index.tenancy import Ledger, ModelState


def credit_match(
    model: ModelState, partition: Partition, hashes: Sequence[bytes], depths: Mapping[str, int]
) -> None:
    """Add one use to every block that a hint delivered.

    Args:
        model: The tenant's model.
        partition: Where the match was found.
        hashes: The request's blocks.
        depths: Matched blocks by replica.

    Complexity: O(blocks matched + runs cut * holders).
    """
    bounds = sorted({min(depth, len(hashes)) for depth in depths.values()})
    if not bounds:
        return
    model.tenant.ledger.used[model.tenant] = None
    chain = list(hashes[: bounds[-1]])
    for start, stop in pairwise((0, *bounds)):
        _carve(partition, chain, start, stop)
    credited: set[Hold] = set()
    for start, stop in pairwise((0, *bounds)):
        found = map(partition.run_of.get, chain[start:stop])
        runs = dict.fromkeys(run for run in found if run is not None)
        for replica_id, matched in depths.items():
            if min(matched, len(hashes)) < stop:
                continue
            incarnation = model.incarnations.get(replica_id)
            if incarnation is not None:
                _credit_runs(model, incarnation, runs, credited)


def _credit_runs(
    model: ModelState, incarnation: Incarnation, runs: Iterable[Run], credited: set[Hold]
) -> None:
    for run in runs:
        hold = run.holds.get(incarnation)
        if hold is not None and hold not in credited:
            credited.add(hold)
            model.tenant.ages.use(hold)


def _carve(partition: Partition, chain: list[bytes], start: int, stop: int) -> None:
    """Cut runs so that the blocks from *start* to *stop* are whole runs.

    Runs are named only after the last cut: a block that comes twice cuts what its first occurrence
    was part of.
    """
    at = start
    packed, stride = b"", 0
    while at < stop:
        run = partition.run_of.get(chain[at])
        if run is None:
            return
        extent = 1
        position = run.position(chain[at])
        if run.length > 1:
            if run.stride != stride:
                stride = run.stride
                packed = pack(chain, stride - OVERHEAD, start, stop)
            offset = (at - start) * stride
            extent = common_blocks(packed, offset, run.packed, position * stride, stride)
        carve(partition, run, position, extent)
        at += extent


def halve_slices(ledger: Ledger, slice_blocks: int) -> Iterator[None]:
    """Halve every use count, yielding between bounded slices.

    Whatever happens in between, each use counted before a tenant's halving began is halved once,
    and none that was counted since.

    Complexity: O(tenants + holds with a use count).
    """
    budget = slice_blocks
    for tenant in list(ledger.used):
        for halving in (_finish_halving, _halve_all):
            for work in halving(tenant.ages):
                budget -= work
                if budget <= 0:
                    yield
                    budget = slice_blocks


def _finish_halving(ages: TenantAges) -> Iterator[int]:
    """Halve what an earlier halving has left, if it was abandoned; yield the work of each step."""
    while ages.halve_one():
        yield HOLD_WORK


def _halve_all(ages: TenantAges) -> Iterator[int]:
    ages.begin_halving()
    yield 1
    yield from _finish_halving(ages)
