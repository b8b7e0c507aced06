"""What events take out: one block of a replica, or everything of a replica at once.

ALL_CLEARED is true at once: the replica's incarnation is marked and no longer counts anywhere, in
time that does not depend on how much it held. Its holds are then reclaimed, a first slice right
away and the rest when the loop has time. Until then blocks that nobody else holds still count as
keys; a quota, and whoever shows key counts, reclaims them before anything else.
"""

from collections.abc import Iterator

from inferencecache.index.run import HOLD_WORK
from inferencecache.index.tenancy import Ledger, ModelState, TenantState


def reclaim_hold(tenant: TenantState) -> int:
    """Reclaim one hold of a tenant's cleared replicas; return the work it was, 0 if none is left.

    Complexity: O(log stamps), and O(length of its run) if nobody else holds it.
    """
    while tenant.cleared:
        hold = tenant.cleared[0].last
        if hold is not None:
            work = hold.run.length + HOLD_WORK
            hold.run.partition.drop_hold(hold)
            return work
        tenant.cleared.popleft()
    tenant.ledger.reclaiming.pop(tenant, None)
    return 0


def reclaim_tenant_slices(tenant: TenantState, slice_blocks: int) -> Iterator[None]:
    """Reclaim what a tenant's cleared replicas held, yielding between bounded slices.

    Complexity: O(holds + blocks nobody else holds).
    """
    budget = slice_blocks
    while work := reclaim_hold(tenant):
        budget -= work
        if budget <= 0:
            yield
            budget = slice_blocks


class Remover:
    """Applies removals to the ledger.

    Args:
        ledger: Where state lives.
        slice_blocks: Blocks reclaimed before the loop is given back.
    """

    __slots__ = ("_ledger", "_slice_blocks")

    def __init__(self, ledger: Ledger, slice_blocks: int) -> None:
        self._ledger = ledger
        self._slice_blocks = slice_blocks

    @property
    def has_pending(self) -> bool:
        """Whether holds of cleared replicas wait to be reclaimed."""
        return bool(self._ledger.reclaiming)

    def evict_block(
        self, model: ModelState, replica_id: str, block_hash: bytes, adapter_id: str
    ) -> None:
        """Remove one block of a replica from every scheme, and from one or all adapters.

        Complexity: one probe per partition in which the replica holds anything, then O(1) at
        either end of a run and O(run length) in its middle.
        """
        incarnation = model.incarnations.get(replica_id)
        if incarnation is None:
            return
        for partition in [*incarnation.partitions]:
            if adapter_id and partition.adapter_id != adapter_id:
                continue
            run = partition.run_of.get(block_hash)
            if run is not None and (hold := run.holds.get(incarnation)) is not None:
                partition.drop_block(hold, block_hash)

    def clear(self, model: ModelState, replica_id: str) -> None:
        """End a replica's life in a model.

        Complexity: O(schemes), plus one bounded slice of reclaiming.
        """
        record = model.stats.get(replica_id)
        if record is not None:
            model.tenant.remove_stats(record)
        incarnation = model.incarnations.pop(replica_id, None)
        if incarnation is None:
            return
        incarnation.is_cleared = True
        for scope in model.scopes.values():
            scope.forget(replica_id)
        self._ledger.add(model, 0, -incarnation.entries)
        incarnation.entries = 0
        model.tenant.cleared.append(incarnation)
        self._ledger.reclaiming[model.tenant] = None
        next(self.reclaim_slices(), None)

    def reclaim_slices(self) -> Iterator[None]:
        """Reclaim what cleared replicas held, yielding between bounded slices.

        Complexity: O(holds + blocks nobody else holds).
        """
        budget = self._slice_blocks
        while self._ledger.reclaiming:
            budget -= reclaim_hold(next(iter(self._ledger.reclaiming)))
            if budget <= 0:
                yield
                budget = self._slice_blocks
