"""The prefix index: which replica holds which blocks, how fresh, in which tier.

Rules of this file:

* a deterministic state machine: every change enters through :meth:`PrefixIndex.report`,
  :meth:`~PrefixIndex.apply`, :meth:`~PrefixIndex.sweep`, :meth:`~PrefixIndex.credit` or their
  slice forms, takes the time from outside, and gives the same state for the same sequence;
* synchronous and without locks: on one event loop each call, and each slice, is atomic;
* reads change nothing that shows, and nothing here scans what an operation does not touch;
* presence and entries are true at once; keys that only cleared replicas held count until they are
  reclaimed, which whoever reads the plain numbers does first if that matters.

Theory of operation: :mod:`inferencecache.index.partition` and ``docs/adr/0002-runs.md``.
"""

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from inferencecache.index.counters import IndexCounters
from inferencecache.index.credit import credit_match, halve_slices
from inferencecache.index.event import EventType, IndexEvent
from inferencecache.index.eviction import Evictor
from inferencecache.index.fences import ClearFences
from inferencecache.index.ingest import Ingest, any_too_long, is_too_long
from inferencecache.index.invariants import check_ledger
from inferencecache.index.match import match_chain, match_exact
from inferencecache.index.match_tiers import match_tiers
from inferencecache.index.partition import Partition
from inferencecache.index.removal import Remover
from inferencecache.index.rules import TenantRules
from inferencecache.index.snapshot import (
    CacheState,
    IndexSnapshot,
    cache_state_slices,
    snapshot_slices,
)
from inferencecache.index.tenancy import Ledger, RecordKey, ScopeState
from inferencecache.index.update import DropReason, StateUpdate
from inferencecache.settings.index import IndexSettings
from inferencecache.types import (
    Candidate,
    EvictionAlgorithm,
    PartitionKey,
    Scope,
    StatsRecord,
)

SNAPSHOT_SLICE_ROWS: Final = 256
"""Rows of a snapshot made before the loop is given back."""

ResultT = TypeVar("ResultT")

_PREFIX_EVICTED: Final = EventType.PREFIX_EVICTED
_ALL_CLEARED: Final = EventType.ALL_CLEARED
"""Named once: reading a member off its class takes a tenth of an eviction's time."""

_NO_STATS: Mapping[str, StatsRecord] = {}


class PrefixIndex:
    """Everything replicas hold, by (tenant, model, hash_scheme, adapter).

    Args:
        settings: Cap, slice sizes and limits.
        rules: Per-tenant TTL, quota and eviction algorithm, read at each use.

    Attributes:
        counters: Totals since the start.
    """

    def __init__(self, settings: IndexSettings, rules: TenantRules) -> None:
        self._settings = settings
        self._rules = rules
        self._ledger = Ledger()
        self._fences = ClearFences(settings.clear_fences_max)
        self.counters = IndexCounters()
        self._evictor = Evictor(
            self._ledger,
            rules,
            self.counters,
            entries_max=settings.entries_max,
            slice_blocks=settings.slice_blocks,
        )
        self._ingest = Ingest(self._ledger, self._evictor, self._fences, self.counters, settings)
        self._remover = Remover(self._ledger, settings.slice_blocks)

    # ------------------------------------------------------------------ changes

    def report(self, update: StateUpdate, now_ns: int) -> None:
        """Apply one update in one go.

        Args:
            update: What a replica holds; additive.
            now_ns: Unix time in nanoseconds.

        Complexity: O(runs met + new blocks); amortised O(1) per victim of quota and cap.
        """
        self._ingest.report(update, now_ns)

    def report_slices(self, update: StateUpdate, now_ns: int) -> Iterator[None]:
        """Apply one update, yielding between slices; quota and cap hold when it ends.

        Complexity: as :meth:`report`; one slice handles a bounded number of blocks.
        """
        return self._ingest.report_slices(update, now_ns)

    def apply(self, event: IndexEvent, now_ns: int) -> None:
        """Apply one event; one that names nothing known changes nothing.

        Complexity: PREFIX_EVICTED O(1) at either end of a run, O(run length) in its middle;
        REPLICA_UPDATED O(log stamps); ALL_CLEARED O(schemes) plus one bounded slice.
        """
        kind = event.type
        seen_ns = self._ingest.clamp(event.timestamp_ns, now_ns)
        model = self._ledger.find_model(event.tenant_id, event.model_id)
        if kind is _PREFIX_EVICTED:
            if model is not None:
                self._remover.evict_block(
                    model, event.replica_id, event.prefix_hash, event.adapter_id
                )
        elif kind is _ALL_CLEARED:
            self._fence(event, seen_ns, now_ns)
            if model is not None:
                self._remover.clear(model, event.replica_id)
        elif model is not None and (record := model.stats.get(event.replica_id)) is not None:
            model.tenant.touch_stats(record, seen_ns)

    def _fence(self, event: IndexEvent, cleared_ns: int, now_ns: int) -> None:
        names = (event.tenant_id, event.model_id, event.replica_id)
        if any_too_long(names, self._settings.identifier_bytes_max):
            self.counters.drops[DropReason.IDENTIFIER_TOO_LONG] += 1
        elif self._settings.clear_fence:
            expires_ns = now_ns + self._rules.ttl_ns(event.tenant_id)
            self._fences.raise_to(names, cleared_ns, expires_ns)

    def takes_name(self, name: str) -> bool:
        """Tell whether *name* is short enough to be kept.

        Complexity: O(1) for names well below the limit.
        """
        return not is_too_long(name, self._settings.identifier_bytes_max)

    def sweep(self, now_ns: int) -> None:
        """Remove everything that outlived its TTL, and reclaim what cleared replicas held.

        Complexity: O(tenants + blocks removed).
        """
        deque(self.sweep_slices(now_ns), maxlen=0)

    def sweep_slices(self, now_ns: int) -> Iterator[None]:
        """Remove everything that outlived its TTL, yielding between slices.

        Complexity: as :meth:`sweep`; one slice removes a bounded number of blocks.
        """
        self._fences.expire(now_ns)
        yield from self._remover.reclaim_slices()
        yield from self._evictor.expire_slices(now_ns)

    @property
    def has_pending_reclaim(self) -> bool:
        """Whether holds of cleared replicas wait to be reclaimed."""
        return self._remover.has_pending

    def reclaim_slices(self) -> Iterator[None]:
        """Reclaim what cleared replicas held, yielding between slices.

        Complexity: O(holds + blocks nobody else holds).
        """
        return self._remover.reclaim_slices()

    def credit(
        self, key: PartitionKey, block_hashes: Sequence[bytes], depths: Mapping[str, int]
    ) -> None:
        """Count a delivered hint as one use of what it promised; only LFU tenants are counted.

        Args:
            key: The partition of the lookup.
            block_hashes: The request's blocks.
            depths: Matched blocks by delivered replica.

        Complexity: O(1) for LRU tenants, else O(runs met * holders) plus cuts.
        """
        if not self.counts_use(key.tenant_id):
            return
        partition = self._partition(key)
        if partition is not None:
            credit_match(partition.scope.model, partition, block_hashes, depths)

    def counts_use(self, tenant_id: str) -> bool:
        """Tell whether uses of a tenant's blocks are counted, so that crediting them does anything.

        Complexity: O(1).
        """
        return self._rules.algorithm(tenant_id) is EvictionAlgorithm.LFU

    def halve_credits_slices(self) -> Iterator[None]:
        """Halve every use count, yielding between slices.

        Complexity: O(holds with a use count).
        """
        return halve_slices(self._ledger, self._settings.slice_blocks)

    # ------------------------------------------------------------------ lookups

    def match_chain(
        self,
        key: PartitionKey,
        block_hashes: Sequence[bytes],
        block_token_counts: Sequence[int],
        now_ns: int,
    ) -> list[Candidate]:
        """Return who holds how long a leading part of a chain.

        Args:
            key: The partition.
            block_hashes: The request's blocks in order.
            block_token_counts: Tokens of each block, >= 0, parallel to *block_hashes*.
            now_ns: Unix time in nanoseconds.

        Returns:
            Candidates in no particular order; those whose tokens sum to 0 are left out.

        Complexity: O(runs met * holders), plus about 15 ns per matched block, or 0.1 ns where the
        blocks come as :class:`~inferencecache.index.packed_hashes.PackedHashes`.
        """
        partition = self._partition(key)
        if partition is None or not block_hashes:
            return []
        stale_ns = now_ns - self._rules.ttl_ns(key.tenant_id)
        return match_chain(partition, block_hashes, block_token_counts, stale_ns)

    def match_tiers(
        self, key: PartitionKey, block_hashes: Sequence[bytes], now_ns: int
    ) -> Mapping[str, Mapping[int, int]]:
        """Return by replica how many leading blocks of a chain it holds in which tier.

        Complexity: as :meth:`match_chain`.
        """
        partition = self._partition(key)
        if partition is None or not block_hashes:
            return {}
        return match_tiers(partition, block_hashes, now_ns - self._rules.ttl_ns(key.tenant_id))

    def match_exact(self, key: PartitionKey, prefix_hash: bytes, now_ns: int) -> list[Candidate]:
        """Return who holds one prefix, with the token counts they stored.

        Complexity: O(holders).
        """
        partition = self._partition(key)
        if partition is None:
            return []
        return match_exact(partition, prefix_hash, now_ns - self._rules.ttl_ns(key.tenant_id))

    def serving_count(self, scope: Scope) -> int:
        """Return how many replicas hold anything in a scope, stale entries included.

        Complexity: O(1).
        """
        state = self._scope(scope)
        return len(state.serving) if state is not None else 0

    def serving_replicas(self, scope: Scope) -> Sequence[str]:
        """Return the replicas that hold anything in a scope, in byte order.

        Complexity: O(1), or O(replicas log replicas) after their set changed.
        """
        state = self._scope(scope)
        return state.replicas() if state is not None else ()

    def stats_of(self, tenant_id: str, model_id: str) -> Mapping[str, StatsRecord]:
        """Return the statistics records of a (tenant, model) by replica; not to be changed.

        Complexity: O(1).
        """
        model = self._ledger.find_model(tenant_id, model_id)
        return model.stats if model is not None else _NO_STATS

    def is_empty(self) -> bool:
        """Tell whether no tenant but the reserved one holds anything.

        Complexity: O(1).
        """
        return self._ledger.entries == 0

    def has_tenant(self, tenant_id: str) -> bool:
        """Tell whether a tenant holds anything.

        Complexity: O(1).
        """
        tenant = self._ledger.tenants.get(tenant_id)
        return tenant is not None and tenant.entries > 0

    def has_model(self, tenant_id: str, model_id: str) -> bool:
        """Tell whether a (tenant, model) holds anything.

        Complexity: O(1).
        """
        model = self._ledger.find_model(tenant_id, model_id)
        return model is not None and model.entries > 0

    # ------------------------------------------------------------------ views

    @property
    def entries(self) -> int:
        """Entries held by all tenants but the reserved one."""
        return self._ledger.entries

    @property
    def prefixes(self) -> int:
        """Distinct keys held by all tenants but the reserved one."""
        return self._ledger.keys

    @property
    def prefixes_by_model(self) -> Mapping[str, int]:
        """Distinct keys by model over all tenants; a drained model stays with 0."""
        return self._ledger.keys_by_model

    @property
    def tier2_records(self) -> Mapping[RecordKey, StatsRecord]:
        """Statistics that count queries of an offload tier, by tenant, model and replica."""
        return self._ledger.tier2_records

    def tenant_prefixes(self) -> dict[str, int]:
        """Return the distinct keys of each tenant that has some.

        Complexity: O(tenants).
        """
        tenants = self._ledger.tenants.values()
        return {t.tenant_id: t.keys for t in tenants if t.keys and not t.is_reserved}

    def cache_state(self, tenant_id: str, model_id: str) -> CacheState:
        """Return the statistics and distinct keys of a (tenant, model).

        Complexity: O(replicas log replicas), and what cleared replicas of the tenant have left.
        """
        return _result(self.cache_state_slices(tenant_id, model_id))

    def cache_state_slices(
        self, tenant_id: str, model_id: str
    ) -> Generator[None, None, CacheState]:
        """Return what :meth:`cache_state` does, yielding between slices.

        Complexity: as :meth:`cache_state`.
        """
        slice_blocks = self._settings.slice_blocks
        return cache_state_slices(self._ledger, tenant_id, model_id, slice_blocks)

    def snapshot(self) -> IndexSnapshot:
        """Return every replica and tenant, sorted.

        Complexity: O(replicas * models), and what cleared replicas have left.
        """
        return _result(self.snapshot_slices())

    def snapshot_slices(self) -> Generator[None, None, IndexSnapshot]:
        """Return every replica and tenant, sorted, yielding between slices.

        Complexity: as :meth:`snapshot`; one slice makes a bounded number of rows.
        """
        return snapshot_slices(self._ledger, SNAPSHOT_SLICE_ROWS, self._settings.slice_blocks)

    def check_invariants(self) -> None:
        """Recount everything and compare, for tests.

        Raises:
            AssertionError: A rule of the structure does not hold.

        Complexity: O(everything).
        """
        check_ledger(self._ledger)

    def _scope(self, scope: Scope) -> ScopeState | None:
        model = self._ledger.find_model(scope.tenant_id, scope.model_id)
        return model.scopes.get(scope.hash_scheme) if model is not None else None

    def _partition(self, key: PartitionKey) -> Partition | None:
        tenant_id, model_id, hash_scheme, adapter_id = key
        model = self._ledger.find_model(tenant_id, model_id)
        scope = model.scopes.get(hash_scheme) if model is not None else None
        return scope.partitions.get(adapter_id) if scope is not None else None


def _result(steps: Generator[None, None, ResultT]) -> ResultT:
    """Return what *steps* come to, without giving way."""
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            result: ResultT = finished.value
            return result
