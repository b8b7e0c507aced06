"""The time of each replica's last ALL_CLEARED, kept for one TTL.

A report stamped before it describes a cache that is gone; storing it would revive entries nobody
will ever remove. Source: docs/adr/0006-clear-fence.md.
"""

from sortedcontainers import SortedList

FenceKey = tuple[str, str, str]
"""(tenant_id, model_id, replica_id)."""


class ClearFences:
    """A bounded set of fences, soonest to expire first.

    Args:
        fences_max: Most fences kept; beyond it the one that expires first is forgotten.
    """

    __slots__ = ("_expiries", "_fences", "_fences_max")

    def __init__(self, fences_max: int) -> None:
        self._fences_max = fences_max
        self._fences: dict[FenceKey, tuple[int, int]] = {}
        self._expiries: SortedList[tuple[int, FenceKey]] = SortedList()

    def __len__(self) -> int:
        return len(self._fences)

    def raise_to(self, key: FenceKey, cleared_ns: int, expires_ns: int) -> None:
        """Remember a clear; an older one never lowers the fence.

        Complexity: O(log fences).
        """
        known = self._fences.get(key)
        if known is not None:
            cleared_ns = max(cleared_ns, known[0])
            expires_ns = max(expires_ns, known[1])
            self._expiries.remove((known[1], key))
        self._fences[key] = (cleared_ns, expires_ns)
        self._expiries.add((expires_ns, key))
        if len(self._fences) > self._fences_max:
            self._forget_first()

    def blocks(self, key: FenceKey, stamp_ns: int, now_ns: int) -> bool:
        """Tell whether a report stamped *stamp_ns* is strictly older than the last clear.

        Complexity: O(1).
        """
        known = self._fences.get(key)
        return known is not None and stamp_ns < known[0] and now_ns < known[1]

    def expire(self, now_ns: int) -> None:
        """Forget the fences whose time is over.

        Complexity: O(forgotten * log fences).
        """
        while self._expiries and self._expiries[0][0] <= now_ns:
            self._forget_first()

    def _forget_first(self) -> None:
        _, key = self._expiries.pop(0)
        del self._fences[key]
