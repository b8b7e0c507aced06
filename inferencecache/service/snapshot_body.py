"""The body of ``/snapshot``: one line of JSON whose keys and order are fixed.

Written by hand because three things are part of the format: the order of keys, absent keys where a
value is unset, and floats in single precision.
"""

import json
from collections.abc import Iterable, Iterator

from inferencecache.index import IndexSnapshot
from inferencecache.index.snapshot import ReplicaRow, TenantRow
from inferencecache.service.float32 import float32_text
from inferencecache.service.rfc3339 import rfc3339
from inferencecache.types import StatsReport

_NO_STATS = StatsReport()


def snapshot_body(snapshot: IndexSnapshot) -> str:
    """Return *snapshot* as one line of JSON with a newline at its end."""
    replicas = _array(_replica(row) for row in snapshot.replicas)
    tenants = _array(_tenant(row) for row in snapshot.tenants)
    return (
        f'{{"replicas":{replicas},"tenants":{tenants},'
        f'"totalPrefixes":{snapshot.total_prefixes},"hotPrefixes":0}}\n'
    )


def _array(items: Iterable[str]) -> str:
    joined = ",".join(items)
    return f"[{joined}]" if joined else "null"


def _object(pairs: Iterator[tuple[str, str]]) -> str:
    return "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"


def _replica(row: ReplicaRow) -> str:
    return _object(_replica_pairs(row))


def _replica_pairs(row: ReplicaRow) -> Iterator[tuple[str, str]]:
    stats = row.stats or _NO_STATS
    yield "replicaId", json.dumps(row.replica_id)
    if row.tenant_id:
        yield "tenant", json.dumps(row.tenant_id)
    yield "cacheMemoryBytes", str(stats.cache_memory_bytes)
    yield "hitRate", float32_text(stats.hit_rate)
    yield "pressure", float32_text(stats.pressure)
    yield "lastUpdate", json.dumps(rfc3339(row.last_seen_ns))
    yield "prefixCount", str(row.prefix_count)
    yield "lastEventAt", json.dumps(rfc3339(row.last_event_ns))
    if row.stats is not None:
        yield "statsReported", "true"
    if stats.t2_hit_tokens:
        yield "t2HitTokens", str(stats.t2_hit_tokens)
    if stats.t2_query_tokens:
        yield "t2QueryTokens", str(stats.t2_query_tokens)


def _tenant(row: TenantRow) -> str:
    return _object(_tenant_pairs(row))


def _tenant_pairs(row: TenantRow) -> Iterator[tuple[str, str]]:
    yield "tenantId", json.dumps(row.tenant_id)
    yield "indexEntries", str(row.entries)
    yield "hitRate", float32_text(row.hit_rate)
    if row.hit_rate_reported:
        yield "hitRateReported", "true"
    yield "memoryUsed", "0"
