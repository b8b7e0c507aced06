"""How long requests take, from those whose end was reported."""

from bisect import bisect_left, insort
from collections import deque
from math import ceil
from typing import Final

_SHARE: Final = 0.99


class ObservedDurations:
    """Remembers the last durations, by their age and by their length.

    Args:
        samples_max: How many.
    """

    __slots__ = ("_by_age_ns", "_by_length_ns", "_samples_max")

    def __init__(self, samples_max: int) -> None:
        self._samples_max = samples_max
        self._by_age_ns: deque[int] = deque()
        self._by_length_ns: list[int] = []

    def __len__(self) -> int:
        return len(self._by_age_ns)

    def add(self, duration_ns: int) -> None:
        """Remember one.

        Complexity: O(n) in the durations kept, of which only moving them in memory counts.
        """
        ordered = self._by_length_ns
        if len(ordered) >= self._samples_max:
            del ordered[bisect_left(ordered, self._by_age_ns.popleft())]
        self._by_age_ns.append(duration_ns)
        insort(ordered, duration_ns)

    def high_ns(self) -> int:
        """Return the 99th percentile; 0 before the first.

        Complexity: O(1).
        """
        ordered = self._by_length_ns
        return ordered[ceil(_SHARE * len(ordered)) - 1] if ordered else 0
