"""What the index has done so far, for metrics."""

from collections import Counter, OrderedDict
from enum import StrEnum
from typing import Final

from inferencecache.index.update import DropReason
from inferencecache.types import EvictionAlgorithm

QUOTA_TENANTS_MAX: Final = 100_000
"""Tenants whose quota evictions are remembered; as many as may have metric labels."""


class EvictionReason(StrEnum):
    """Why the index removed entries on its own."""

    CAP = "cap"
    TTL = "ttl"


class IndexCounters:
    """Totals since the start; they only grow.

    Args:
        tenants_max: Most tenants counted by name.

    Attributes:
        evictions: Entries removed, by the victim's algorithm and the reason.
        tenant_evictions: Keys removed by a quota, by tenant; beyond the bound the tenant is
            forgotten of which none was removed for the longest.
        drops: Things reported but not stored, by reason.
        timestamps_clamped: Stamps from the future taken as now.
        fenced_updates: Updates older than the replica's last ALL_CLEARED.
        updates: Updates taken in.
    """

    __slots__ = (
        "_tenants_max",
        "drops",
        "evictions",
        "fenced_updates",
        "tenant_evictions",
        "timestamps_clamped",
        "updates",
    )

    def __init__(self, tenants_max: int = QUOTA_TENANTS_MAX) -> None:
        self._tenants_max = tenants_max
        self.evictions: Counter[tuple[EvictionAlgorithm, EvictionReason]] = Counter()
        self.tenant_evictions: OrderedDict[str, int] = OrderedDict()
        self.drops: Counter[DropReason] = Counter()
        self.timestamps_clamped = 0
        self.fenced_updates = 0
        self.updates = 0

    def count_quota(self, tenant_id: str, keys: int) -> None:
        """Count *keys* that a quota took from a tenant.

        Complexity: O(1).
        """
        counted = self.tenant_evictions
        counted[tenant_id] = counted.get(tenant_id, 0) + keys
        counted.move_to_end(tenant_id)
        if len(counted) > self._tenants_max:
            counted.popitem(last=False)
