"""Frozen views of the index for operators: what each replica and tenant holds.

The reserved tenant is in none of them.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Final

from inferencecache.index.removal import reclaim_tenant_slices
from inferencecache.index.tenancy import Ledger, TenantState
from inferencecache.types import StatsRecord, StatsReport

_SORTED_NAMES: Final = 2_048
"""Names put in order in one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRow:
    """One replica of one tenant, over all its models.

    Attributes:
        replica_id: The replica.
        tenant_id: The tenant.
        stats: Its latest statistics, None if it never reported any.
        last_seen_ns: Its latest sign of life, None without statistics.
        prefix_count: Entries it holds.
        last_event_ns: Newest last_seen of its entries, None without entries.
    """

    replica_id: str
    tenant_id: str
    stats: StatsReport | None
    last_seen_ns: int | None
    prefix_count: int
    last_event_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRow:
    """One tenant.

    Attributes:
        tenant_id: The tenant.
        entries: Distinct keys it holds.
        hit_rate: Mean of its replicas' latest hit rates, 0 without statistics.
        hit_rate_reported: Whether there were any.
    """

    tenant_id: str
    entries: int
    hit_rate: float
    hit_rate_reported: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSnapshot:
    """All rows, sorted by tenant, then replica."""

    replicas: tuple[ReplicaRow, ...]
    tenants: tuple[TenantRow, ...]
    total_prefixes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """One (tenant, model): its statistics records by replica id, and its distinct keys."""

    replicas: tuple[StatsRecord, ...]
    total_prefixes: int


def cache_state_slices(
    ledger: Ledger, tenant_id: str, model_id: str, slice_blocks: int
) -> Generator[None, None, CacheState]:
    """Return the statistics and distinct keys of a (tenant, model), yielding between slices.

    Complexity: O(replicas log replicas), and what cleared replicas of the tenant have left.
    """
    yield from _settle(ledger, tenant_id, slice_blocks)
    model = ledger.find_model(tenant_id, model_id)
    if model is None:
        return CacheState(replicas=(), total_prefixes=0)
    stats, keys = dict(model.stats), model.keys
    names = yield from _sorted_slices(list(stats))
    return CacheState(replicas=tuple(map(stats.__getitem__, names)), total_prefixes=keys)


def _sorted_slices(names: list[str]) -> Generator[None, None, list[str]]:
    """Return *names* in order, yielding between bounded slices."""
    if len(names) <= _SORTED_NAMES:
        return sorted(names)
    parts = []
    for start in range(0, len(names), _SORTED_NAMES):
        parts.append(sorted(names[start : start + _SORTED_NAMES]))
        yield
    merged, in_order = merge(*parts), []
    while part := list(islice(merged, _SORTED_NAMES)):
        in_order += part
        yield
    return in_order


def snapshot_slices(
    ledger: Ledger, slice_rows: int, slice_blocks: int
) -> Generator[None, None, IndexSnapshot]:
    """Build the rows of every tenant, yielding between bounded slices.

    Each tenant's rows are of one moment; what changes in between shows in the later ones. The
    total is that of the rows.

    Complexity: O(replicas * models + tenants log tenants), and what cleared replicas have left; a
    replica whose newest hold went is walked once more.
    """
    replicas: list[ReplicaRow] = []
    tenants: list[TenantRow] = []
    yield_at = slice_rows
    for tenant_id in sorted(ledger.tenants):
        yield from _settle(ledger, tenant_id, slice_blocks)
        tenant = ledger.tenants.get(tenant_id)
        if tenant is None or tenant.is_reserved:
            continue
        latest = _latest_stats(tenant)
        replicas += _replica_rows(tenant, latest)
        tenants.append(_tenant_row(tenant, latest))
        if len(replicas) + len(tenants) >= yield_at:
            yield
            yield_at = len(replicas) + len(tenants) + slice_rows
    return IndexSnapshot(
        replicas=tuple(replicas),
        tenants=tuple(tenants),
        total_prefixes=sum(row.entries for row in tenants),
    )


def _settle(ledger: Ledger, tenant_id: str, slice_blocks: int) -> Iterator[None]:
    """Reclaim what cleared replicas of a tenant have left, so that its keys are those held."""
    tenant = ledger.tenants.get(tenant_id)
    if tenant is not None:
        yield from reclaim_tenant_slices(tenant, slice_blocks)


def _latest_stats(tenant: TenantState) -> dict[str, StatsRecord]:
    latest: dict[str, StatsRecord] = {}
    for _, model in sorted(tenant.models.items()):
        for replica_id, record in model.stats.items():
            known = latest.get(replica_id)
            if known is None or record.last_seen_ns > known.last_seen_ns:
                latest[replica_id] = record
    return latest


def _replica_rows(tenant: TenantState, latest: Mapping[str, StatsRecord]) -> Iterator[ReplicaRow]:
    entries: dict[str, int] = {}
    newest: dict[str, int] = {}
    for model in tenant.models.values():
        for replica_id, incarnation in model.incarnations.items():
            entries[replica_id] = entries.get(replica_id, 0) + incarnation.entries
            seen_ns = incarnation.newest()
            if seen_ns is not None:
                newest[replica_id] = max(seen_ns, newest.get(replica_id, seen_ns))
    for replica_id in sorted(latest.keys() | entries.keys()):
        record = latest.get(replica_id)
        yield ReplicaRow(
            replica_id=replica_id,
            tenant_id=tenant.tenant_id,
            stats=record.stats if record is not None else None,
            last_seen_ns=record.last_seen_ns if record is not None else None,
            prefix_count=entries.get(replica_id, 0),
            last_event_ns=newest.get(replica_id),
        )


def _tenant_row(tenant: TenantState, latest: Mapping[str, StatsRecord]) -> TenantRow:
    rates = [record.stats.hit_rate for _, record in sorted(latest.items())]
    return TenantRow(
        tenant_id=tenant.tenant_id,
        entries=tenant.keys,
        hit_rate=sum(rates) / len(rates) if rates else 0.0,
        hit_rate_reported=bool(rates),
    )
