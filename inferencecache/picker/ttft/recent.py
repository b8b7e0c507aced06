"""Whether there is enough recent evidence."""

from collections import deque


class RecentEvidence:
    """Remembers when the last few reports came.

    Args:
        samples_min: How many must be recent.
        window_ns: How long a report is recent.
    """

    __slots__ = ("_seen_ns", "_window_ns")

    def __init__(self, samples_min: int, window_ns: int) -> None:
        self._seen_ns: deque[int] = deque(maxlen=samples_min)
        self._window_ns = window_ns

    def add(self, now_ns: int) -> None:
        """Note a report."""
        self._seen_ns.append(now_ns)

    def is_enough(self, now_ns: int) -> bool:
        """Return whether as many reports as needed are recent.

        Complexity: O(1).
        """
        seen_ns = self._seen_ns
        return len(seen_ns) == seen_ns.maxlen and now_ns - seen_ns[0] <= self._window_ns

    @property
    def latest_ns(self) -> int | None:
        """When the last report came, None before the first."""
        return self._seen_ns[-1] if self._seen_ns else None
