"""How long requests take, from those whose end was reported."""

from collections import deque
from math import ceil
from typing import Final

_SHARE: Final = 0.99


class ObservedDurations:
    """Remembers the last durations.

    Args:
        samples_max: How many.
    """

    __slots__ = ("_durations_ns", "_high_ns")

    def __init__(self, samples_max: int) -> None:
        self._durations_ns: deque[int] = deque(maxlen=samples_max)
        self._high_ns: int | None = None

    def __len__(self) -> int:
        return len(self._durations_ns)

    def add(self, duration_ns: int) -> None:
        """Remember one."""
        self._durations_ns.append(duration_ns)
        self._high_ns = None

    def high_ns(self) -> int:
        """Return the 99th percentile; 0 before the first.

        Complexity: O(n log n) in the durations kept after each new one, else O(1).
        """
        if self._high_ns is None:
            ordered = sorted(self._durations_ns)
            self._high_ns = ordered[ceil(_SHARE * len(ordered)) - 1] if ordered else 0
        return self._high_ns
