"""The gaps between arrivals of an answer's chunks, counted in the buckets that pickers merge."""

from bisect import bisect_left
from typing import Final

from inferencecache.clock import NS_PER_MS

GAP_LAYOUT: Final = 1
"""The number of the layout below, on the wire."""

_EDGES_MS: Final = (5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1_000)
_EDGES_NS: Final = tuple(edge * NS_PER_MS for edge in _EDGES_MS)


class Gaps:
    """Counts the gaps of one answer.

    >>> gaps = Gaps()
    >>> for arrival_ns in (0, 5_000_000, 5_000_000, 2_000_000_000):
    ...     gaps.arrived(arrival_ns)
    >>> gaps.counts[0], gaps.counts[-1], sum(gaps.counts)
    (2, 1, 3)
    """

    __slots__ = ("_counts", "_last_ns", "_total")

    def __init__(self) -> None:
        self._counts = [0] * (len(_EDGES_NS) + 1)
        self._last_ns: int | None = None
        self._total = 0

    @property
    def counts(self) -> tuple[int, ...]:
        """Gaps by bucket; nothing at all where there was no gap."""
        return tuple(self._counts) if self._total else ()

    def arrived(self, now_ns: int) -> None:
        """Take note of a chunk.

        Args:
            now_ns: Monotonic time.
        """
        if self._last_ns is not None:
            self._counts[bisect_left(_EDGES_NS, now_ns - self._last_ns)] += 1
            self._total += 1
        self._last_ns = now_ns

    def interrupted(self) -> None:
        """Leave the next gap out: it is ours, not the engine's."""
        self._last_ns = None
