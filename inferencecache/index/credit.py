"""Use counts under LFU: credit the blocks behind a delivered hint.

A hit credits a leading part of what a replica holds, so runs are cut where that part ends: then a
use count, like age and tier, belongs to a whole hold. LRU tenants never come here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from inferencecache.index.ages import TenantAges
from inferencecache.index.match import Request
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

    Complexity: O(runs met * holders), plus packing about 12 ns per block of a chain that does not
    come packed, and O(shorter part) per cut, at most two per delivered depth.
    """
    bounds = sorted({min(depth, len(hashes)) for depth in depths.values()})
    if not bounds:
        return
    model.tenant.ledger.used[model.tenant] = None
    spans = list(pairwise((0, *bounds)))
    request = Request(partition, hashes)
    for start, stop in spans:
        _carve(request, start, stop)
    request = Request(partition, hashes)
    credited: set[Hold] = set()
    for start, stop in spans:
        runs = dict.fromkeys(_runs(request, start, stop))
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


def _carve(request: Request, start: int, stop: int) -> None:
    """Cut runs so that the blocks from *start* to *stop* are whole runs.

    Runs are named only after the last cut: a block that comes twice cuts what its first occurrence
    was part of.
    """
    at = start
    while at < stop:
        block_hash = request.hashes[at]
        run = request.partition.run_of.get(block_hash)
        if run is None:
            return
        extent = min(request.extent(run, at), stop - at)
        carve(request.partition, run, run.position(block_hash), extent)
        at += extent


def _runs(request: Request, start: int, stop: int) -> Iterator[Run]:
    """Yield the runs of the known blocks from *start* to *stop*."""
    at = start
    while at < stop:
        run = request.partition.run_of.get(request.hashes[at])
        if run is not None:
            yield run
        at += request.extent(run, at) if run is not None else 1


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
