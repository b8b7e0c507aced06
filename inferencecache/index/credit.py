"""Use counts under LFU: credit the blocks behind a delivered hint.

A hit credits a leading part of what a replica holds, so runs are cut where that part ends: then a
use count, like age and tier, belongs to a whole hold. LRU tenants never come here.
"""

from collections.abc import Iterator, Mapping, Sequence

from inferencecache.index.packing import common_blocks, pack
from inferencecache.index.partition import Partition
from inferencecache.index.run import Run
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
    ages = model.tenant.ages
    for depth in sorted(set(depths.values())):
        for run in list(_carved(partition, list(hashes[:depth]))):
            for replica_id, matched in depths.items():
                if matched != depth:
                    continue
                incarnation = model.incarnations.get(replica_id)
                hold = run.holds.get(incarnation) if incarnation is not None else None
                if hold is not None:
                    ages.credit(hold, hold.credits + 1)


def _carved(partition: Partition, hashes: list[bytes]) -> dict[Run, None]:
    """Return the runs that make up *hashes* exactly, cutting them where needed.

    Runs are named only after the last cut: a block that comes twice cuts what its first occurrence
    was part of.
    """
    packed = pack(hashes, partition.width) if partition.stride else b""
    stride = partition.stride
    at = 0
    while at < len(hashes):
        run = partition.run_of.get(hashes[at])
        if run is None:
            break
        extent, start = 1, partition.position(run, hashes[at])
        if run.length > 1:
            extent = common_blocks(packed, at * stride, run.packed, start * stride, stride)
        carve(partition, run, start, extent)
        at += extent
    return dict.fromkeys(partition.run_of[block_hash] for block_hash in hashes[:at])


def halve_slices(ledger: Ledger, slice_holds: int) -> Iterator[None]:
    """Halve every use count, yielding between bounded slices.

    Complexity: O(holds with a use count).
    """
    for tenant in list(ledger.tenants.values()):
        for done, hold in enumerate(tenant.ages.used(), start=1):
            if hold.run.length and hold.run.holds.get(hold.incarnation) is hold:
                tenant.ages.credit(hold, hold.credits // 2)
            if done % slice_holds == 0:
                yield
