"""What the counters of a replica's offload tier say about it."""

from dataclasses import dataclass

from inferencecache.index import IndexSnapshot
from inferencecache.types import StatsReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """One replica of one tenant, for operators.

    Attributes:
        tenant: The tenant.
        replica_id: The replica.
        entries: Entries it holds.
        hit_rate: As reported, None without statistics.
        pressure: As reported, None without statistics.
        t2_hit_tokens: As reported.
        t2_query_tokens: As reported.
        t2_hit_rate: Share of the tokens asked of its offload tier that it had, None while none
            were asked.
        t2_degraded: Whether the tier is asked and never has anything.
    """

    tenant: str
    replica_id: str
    entries: int
    hit_rate: float | None
    pressure: float | None
    t2_hit_tokens: int
    t2_query_tokens: int
    t2_hit_rate: float | None
    t2_degraded: bool


def t2_hit_rate(stats: StatsReport | None) -> float | None:
    """Return hits over queries of the offload tier, 0 to 1; None while there were no queries."""
    if stats is None or stats.t2_query_tokens <= 0:
        return None
    return min(max(stats.t2_hit_tokens / stats.t2_query_tokens, 0.0), 1.0)


def replica_states(snapshot: IndexSnapshot) -> list[ReplicaState]:
    """Return one state per replica, sorted by tenant and replica."""
    states = []
    for row in snapshot.replicas:
        rate = t2_hit_rate(row.stats)
        states.append(
            ReplicaState(
                tenant=row.tenant_id,
                replica_id=row.replica_id,
                entries=row.prefix_count,
                hit_rate=row.stats.hit_rate if row.stats else None,
                pressure=row.stats.pressure if row.stats else None,
                t2_hit_tokens=row.stats.t2_hit_tokens if row.stats else 0,
                t2_query_tokens=row.stats.t2_query_tokens if row.stats else 0,
                t2_hit_rate=rate,
                t2_degraded=rate == 0.0,
            )
        )
    return states
