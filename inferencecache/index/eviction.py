"""Take entries out: what outlived its TTL, what is over a quota, what is over the cap.

Victims go from the oldest hold, deepest blocks first, exactly down to the limit. Nothing here
scans: the oldest hold of a tenant, the stalest run of a tenant and the tenant with the oldest hold
are each the head of an order.
"""

from collections.abc import Generator, Iterator

from inferencecache.index.counters import EvictionReason, IndexCounters
from inferencecache.index.removal import reclaim_hold
from inferencecache.index.rules import TenantRules
from inferencecache.index.run import HOLD_WORK, Hold
from inferencecache.index.tenancy import Ledger, TenantState


class Evictor:
    """The three ways the index shrinks on its own.

    Args:
        ledger: The tenants and their totals.
        rules: Their TTLs, quotas and algorithms.
        counters: Where removals are counted.
        entries_max: Cap on entries of tenants that are not reserved, 0 for none.
        slice_blocks: Blocks removed before a sweep gives the loop back.
    """

    __slots__ = ("_counters", "_entries_max", "_ledger", "_revision", "_rules", "_slice_blocks")

    def __init__(
        self,
        ledger: Ledger,
        rules: TenantRules,
        counters: IndexCounters,
        *,
        entries_max: int,
        slice_blocks: int,
    ) -> None:
        self._ledger = ledger
        self._rules = rules
        self._counters = counters
        self._entries_max = entries_max
        self._slice_blocks = slice_blocks
        self._revision = rules.revision

    def limit_slices(self, tenant_id: str, budget: int) -> Iterator[None]:
        """Make a tenant keep its quota, then all tenants the cap, yielding between slices.

        Args:
            tenant_id: Who was reported for.
            budget: Blocks to handle before the first yield: what the slice so far has left.

        Complexity: O(entries removed + log stamps), amortised; O(runs) once when a quota is new.
        """
        tenant = self._ledger.tenants.get(tenant_id)
        has_quota = self._rules.quota(tenant_id) is not None
        if has_quota or self._over_cap() or (tenant is not None and tenant.ages.follows_runs):
            return self._limit_slices(tenant_id, budget)
        return iter(())

    def _over_cap(self) -> bool:
        return 0 < self._entries_max < self._ledger.entries

    def _limit_slices(self, tenant_id: str, budget: int) -> Iterator[None]:
        budget = yield from self._quota_slices(tenant_id, budget)
        yield from self._cap_slices(budget)

    def _quota_slices(self, tenant_id: str, budget: int) -> Generator[None, None, int]:
        """Remove a tenant's stalest keys until it keeps its quota, those nobody holds first."""
        while (tenant := self._ledger.tenants.get(tenant_id)) is not None:
            quota = None if tenant.is_reserved else self._rules.quota(tenant_id)
            if quota is None:
                tenant.ages.unfollow_runs()
                break
            if not tenant.ages.follows_runs:
                yield from tenant.ages.follow_runs_slices(self._slice_blocks)
            elif tenant.keys <= quota:
                break
            elif budget <= 0:
                yield
                budget = self._slice_blocks
            else:
                budget -= reclaim_hold(tenant) or self._drop_stalest(tenant, quota)
        return budget

    def _drop_stalest(self, tenant: TenantState, quota: int) -> int:
        run = tenant.ages.stalest_run()
        assert run is not None, "a tenant with keys has runs"
        removed = min(run.length, tenant.keys - quota)
        run.partition.drop_keys(run, removed)
        self._counters.count_quota(tenant.tenant_id, removed)
        return removed + HOLD_WORK

    def _cap_slices(self, budget: int) -> Iterator[None]:
        """Remove the oldest entries of all tenants until the cap holds."""
        ledger = self._ledger
        if not self._over_cap():
            return
        if self._revision != self._rules.revision:
            self._revision = self._rules.revision
            ledger.hint_used()
        while ledger.entries > self._entries_max:
            if budget <= 0:
                yield
                budget = self._slice_blocks
            else:
                budget -= self._take_oldest(min(ledger.entries - self._entries_max, budget))

    def _take_oldest(self, excess: int) -> int:
        hold = self._ledger.stalest_hold(self._rules.algorithm) or self._oldest_used()
        if hold.incarnation.is_cleared:
            hold.run.partition.drop_hold(hold)
            return HOLD_WORK
        removed = min(hold.run.length, excess)
        algorithm = self._rules.algorithm(hold.run.partition.scope.model.tenant.tenant_id)
        hold.run.partition.drop_tail(hold, removed)
        self._counters.evictions[algorithm, EvictionReason.CAP] += removed
        return removed + HOLD_WORK

    def _oldest_used(self) -> Hold:
        """Return a victim when everything held was used.

        An update adds at least as many unused entries as it puts the index over its cap, so this
        happens only where lookups used them between two slices of that very update.
        """
        tenants = self._ledger.tenants.values()
        heads = (tenant.ages.oldest() for tenant in tenants if not tenant.is_reserved)
        return min(filter(None, heads), key=lambda hold: hold.last_seen_ns)

    def expire_slices(self, now_ns: int) -> Iterator[None]:
        """Remove every hold and statistics record that outlived its TTL, slice by slice.

        Complexity: O(tenants + blocks removed); one slice removes a bounded number of blocks.
        """
        budget = self._slice_blocks
        for tenant in list(self._ledger.tenants.values()):
            stale_ns = now_ns - self._rules.ttl_ns(tenant.tenant_id)
            while budget > 0 and (work := self._expire_one(tenant, stale_ns)):
                budget -= work
                if budget <= 0:
                    yield
                    budget = self._slice_blocks
            budget -= 1
            if budget <= 0:
                yield
                budget = self._slice_blocks

    def _expire_one(self, tenant: TenantState, stale_ns: int) -> int:
        """Remove one hold or record as old as *stale_ns*; return the work it was, 0 if none is."""
        record = tenant.stats_order.oldest()
        if record is not None and record.last_seen_ns <= stale_ns:
            tenant.remove_stats(record)
            return 1
        hold = tenant.ages.oldest()
        if hold is None or hold.last_seen_ns > stale_ns:
            return 0
        blocks = hold.run.length
        if not hold.incarnation.is_cleared and not tenant.is_reserved:
            algorithm = self._rules.algorithm(tenant.tenant_id)
            self._counters.evictions[algorithm, EvictionReason.TTL] += blocks
        hold.run.partition.drop_hold(hold)
        return blocks + HOLD_WORK
