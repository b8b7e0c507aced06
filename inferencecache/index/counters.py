"""What the index has done so far, for metrics."""

from collections import Counter
from enum import StrEnum

from inferencecache.index.update import DropReason
from inferencecache.types import EvictionAlgorithm


class EvictionReason(StrEnum):
    """Why the index removed entries on its own."""

    CAP = "cap"
    TTL = "ttl"


class IndexCounters:
    """Totals since the start; they only grow.

    Attributes:
        evictions: Entries removed, by the victim's algorithm and the reason.
        tenant_evictions: Keys removed by a quota, by tenant.
        drops: Things reported but not stored, by reason.
        timestamps_clamped: Stamps from the future taken as now.
        fenced_updates: Updates older than the replica's last ALL_CLEARED.
        updates: Updates taken in.
        events: Events applied, by type.
    """

    __slots__ = (
        "drops",
        "events",
        "evictions",
        "fenced_updates",
        "tenant_evictions",
        "timestamps_clamped",
        "updates",
    )

    def __init__(self) -> None:
        self.evictions: Counter[tuple[EvictionAlgorithm, EvictionReason]] = Counter()
        self.tenant_evictions: Counter[str] = Counter()
        self.drops: Counter[DropReason] = Counter()
        self.timestamps_clamped = 0
        self.fenced_updates = 0
        self.updates = 0
        self.events: Counter[str] = Counter()
