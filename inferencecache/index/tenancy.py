"""Who owns what: tenant, model, scope, and the counters kept in step with every change.

::

    Ledger                       totals over all tenants
    └── TenantState              keys, entries, the age orders
        └── ModelState           incarnations, statistics, keys and entries of (tenant, model)
            └── ScopeState       one hash_scheme: which replicas serve it
                └── Partition    one adapter: the blocks

A *key* is a distinct block of a partition, whoever holds it; an *entry* is one replica's claim on
one key. Empty containers are removed at once, so presence is membership.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from inferencecache.index.age_order import AgeOrder
from inferencecache.index.ages import TenantAges
from inferencecache.types import PROBE_TENANT_ID, EvictionAlgorithm, StatsRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from inferencecache.index.partition import Partition
    from inferencecache.index.run import Hold, Incarnation


DRAINED_MODELS_MAX: Final = 1_000
"""Models without keys that are still shown with 0; as many as have metric labels."""

RecordKey = tuple[str, str, str]
"""Tenant, model and replica of a statistics record."""


class ScopeState:
    """One (tenant, model, hash_scheme): its partitions and which replicas serve it."""

    __slots__ = ("_sorted", "hash_scheme", "model", "partitions", "serving")

    def __init__(self, model: ModelState, hash_scheme: str) -> None:
        self.model = model
        self.hash_scheme = hash_scheme
        self.partitions: dict[str, Partition] = {}
        self.serving: dict[str, int] = {}
        self._sorted: tuple[str, ...] | None = None

    def add_entries(self, replica_id: str, entries: int) -> None:
        """Count *entries* more, or fewer if negative, for a replica.

        Complexity: O(1).
        """
        before = self.serving.get(replica_id, 0)
        after = self.serving[replica_id] = before + entries
        if not before:
            self._sorted = None
        elif not after:
            self.forget(replica_id)

    def forget(self, replica_id: str) -> int:
        """Stop counting a replica; return how many entries it had.

        Complexity: O(1).
        """
        self._sorted = None
        return self.serving.pop(replica_id, 0)

    def replicas(self) -> tuple[str, ...]:
        """Return the serving replicas in byte order.

        Complexity: O(1), or O(replicas log replicas) after their set changed.
        """
        if self._sorted is None:
            self._sorted = tuple(sorted(self.serving))
        return self._sorted


class ModelState:
    """One (tenant, model): lives of replicas, statistics, and totals."""

    __slots__ = ("entries", "incarnations", "keys", "model_id", "scopes", "stats", "tenant")

    def __init__(self, tenant: TenantState, model_id: str) -> None:
        self.tenant = tenant
        self.model_id = model_id
        self.scopes: dict[str, ScopeState] = {}
        self.incarnations: dict[str, Incarnation] = {}
        self.stats: dict[str, StatsRecord] = {}
        self.keys = 0
        self.entries = 0

    def release(self, scope: ScopeState, adapter_id: str) -> None:
        """Drop a partition that became empty, and what became empty with it.

        Complexity: O(1).
        """
        del scope.partitions[adapter_id]
        if not scope.partitions:
            del self.scopes[scope.hash_scheme]
            self.prune()

    def prune(self) -> None:
        """Drop this model, and its tenant, once nothing is left.

        Complexity: O(1).
        """
        if self.scopes or self.stats:
            return
        if self.tenant.models.pop(self.model_id, None) is not None and not self.tenant.models:
            self.tenant.ledger.forget(self.tenant)


class TenantState:
    """One tenant: its models, totals, and the order in which its holds go."""

    __slots__ = (
        "ages",
        "cleared",
        "entries",
        "head_hint",
        "is_reserved",
        "keys",
        "ledger",
        "models",
        "number",
        "stats_order",
        "tenant_id",
    )

    def __init__(self, tenant_id: str, number: int, ledger: Ledger) -> None:
        self.tenant_id = tenant_id
        self.number = number
        self.ledger = ledger
        self.is_reserved = tenant_id == PROBE_TENANT_ID
        self.models: dict[str, ModelState] = {}
        self.keys = 0
        self.entries = 0
        self.head_hint: int | None = None
        self.ages = TenantAges(partial(ledger.hint, self))
        self.stats_order: AgeOrder[StatsRecord] = AgeOrder(lambda _: 0)
        self.cleared: deque[Incarnation] = deque()

    def put_stats(self, model: ModelState, record: StatsRecord) -> None:
        """Add or replace a replica's statistics in one model.

        Complexity: O(log stamps).
        """
        known = model.stats.get(record.replica_id)
        if known is not None:
            self.stats_order.discard(known, known.last_seen_ns)
        else:
            self.ledger.stats_records += 1
        record.model_id = model.model_id
        model.stats[record.replica_id] = record
        self.stats_order.add(record, record.last_seen_ns)
        if record.stats.t2_query_tokens > 0 and not self.is_reserved:
            self.ledger.tier2_records[self._record_key(record)] = record
        else:
            self.ledger.tier2_records.pop(self._record_key(record), None)

    def touch_stats(self, record: StatsRecord, seen_ns: int) -> None:
        """Move a record's sign of life, forwards or backwards.

        Complexity: O(log stamps).
        """
        self.stats_order.discard(record, record.last_seen_ns)
        record.last_seen_ns = seen_ns
        self.stats_order.add(record, seen_ns)

    def remove_stats(self, record: StatsRecord) -> None:
        """Forget a replica's statistics in one model.

        Complexity: O(log stamps).
        """
        model = self.models[record.model_id]
        del model.stats[record.replica_id]
        self.stats_order.discard(record, record.last_seen_ns)
        self.ledger.stats_records -= 1
        self.ledger.tier2_records.pop(self._record_key(record), None)
        model.prune()

    def _record_key(self, record: StatsRecord) -> RecordKey:
        return self.tenant_id, record.model_id, record.replica_id


class Ledger:
    """Totals over all tenants, and the tenants by their oldest hold."""

    __slots__ = (
        "_drained",
        "_heads",
        "_order",
        "_tenants_made",
        "entries",
        "keys",
        "keys_by_model",
        "reclaiming",
        "stats_records",
        "tenants",
        "tier2_records",
        "used",
    )

    def __init__(self) -> None:
        self.tenants: dict[str, TenantState] = {}
        self.entries = 0
        self.keys = 0
        self.keys_by_model: dict[str, int] = {}
        self._drained: dict[str, None] = {}
        self.stats_records = 0
        self.tier2_records: dict[RecordKey, StatsRecord] = {}
        self.reclaiming: dict[TenantState, None] = {}
        self._order = 0
        self.used: dict[TenantState, None] = {}
        self._heads: AgeOrder[TenantState] = AgeOrder(lambda tenant: -tenant.number)
        self._tenants_made = 0

    def take_order(self, blocks: int) -> int:
        """Return the place of the first of *blocks* now reported among everything reported.

        Complexity: O(1).
        """
        first = self._order
        self._order += blocks
        return first

    def model(self, tenant_id: str, model_id: str) -> ModelState:
        """Return the state of a (tenant, model), made if absent.

        Complexity: O(1).
        """
        tenant = self.tenants.get(tenant_id)
        if tenant is None:
            self._tenants_made += 1
            tenant = self.tenants[tenant_id] = TenantState(tenant_id, self._tenants_made, self)
        model = tenant.models.get(model_id)
        if model is None:
            model = tenant.models[model_id] = ModelState(tenant, model_id)
        return model

    def find_model(self, tenant_id: str, model_id: str) -> ModelState | None:
        """Return the state of a (tenant, model), None if nothing is known of it.

        Complexity: O(1).
        """
        tenant = self.tenants.get(tenant_id)
        return tenant.models.get(model_id) if tenant is not None else None

    def add(self, model: ModelState, keys: int, entries: int) -> None:
        """Count *keys* and *entries* more, or fewer if negative, in a model.

        Complexity: O(1).
        """
        tenant = model.tenant
        model.keys += keys
        tenant.keys += keys
        model.entries += entries
        tenant.entries += entries
        if tenant.is_reserved:
            return
        self.entries += entries
        if keys:
            self.keys += keys
            model_id = model.model_id
            before = self.keys_by_model.get(model_id, 0)
            after = self.keys_by_model[model_id] = before + keys
            if not before or not after:
                self._note_drained(model_id)

    def _note_drained(self, model_id: str) -> None:
        """Keep drained models at 0, for their gauges to show it, but not without bound."""
        if self.keys_by_model[model_id]:
            self._drained.pop(model_id, None)
            return
        self._drained[model_id] = None
        if len(self._drained) > DRAINED_MODELS_MAX:
            longest = next(iter(self._drained))
            del self._drained[longest], self.keys_by_model[longest]

    def hint(self, tenant: TenantState, seen_ns: int) -> None:
        """Note that *tenant* may now hold something as old as *seen_ns*.

        Complexity: O(1) for what is newer than the tenant's oldest, else O(log tenants).
        """
        if not tenant.is_reserved and (tenant.head_hint is None or seen_ns < tenant.head_hint):
            self._move_head(tenant, seen_ns)

    def _move_head(self, tenant: TenantState, seen_ns: int | None) -> None:
        was_ns, tenant.head_hint = tenant.head_hint, seen_ns
        heads = self._heads
        if was_ns is not None:
            if seen_ns is not None and heads.advance(was_ns, seen_ns, -tenant.number):
                return
            heads.discard(tenant, was_ns)
        if seen_ns is not None:
            heads.add(tenant, seen_ns)

    def hint_used(self) -> None:
        """Take anew the hints of tenants with used holds, after their algorithm may have changed.

        Complexity: O(tenants that have used holds).
        """
        for tenant in list(self.used):
            oldest = tenant.ages.oldest()
            if oldest is not None:
                self.hint(tenant, oldest.last_seen_ns)

    def forget(self, tenant: TenantState) -> None:
        """Forget a tenant of whom nothing is left.

        Complexity: O(log tenants).
        """
        self._move_head(tenant, None)
        self.used.pop(tenant, None)
        self.reclaiming.pop(tenant, None)
        self.tenants.pop(tenant.tenant_id, None)

    def stalest_hold(self, algorithm_of: Callable[[str], EvictionAlgorithm]) -> Hold | None:
        """Return the hold the cap takes from first, over all tenants.

        Hints are lower bounds, put right here when they come up.

        Complexity: O(log tenants), amortised over the changes that made hints stale.
        """
        tenant = self._heads.oldest()
        while tenant is not None:
            victim = tenant.ages.victim(algorithm_of(tenant.tenant_id))
            seen_ns = victim.last_seen_ns if victim is not None else None
            if seen_ns == tenant.head_hint:
                return victim
            self._move_head(tenant, seen_ns)
            before, tenant = tenant, self._heads.oldest()
            if tenant is before:
                return victim
        return None

    def heads(self) -> list[TenantState]:
        """Return the tenants the cap may take from, for checks.

        Complexity: O(tenants).
        """
        return self._heads.items()
