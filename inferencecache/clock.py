"""Time as the core sees it: integer nanoseconds, handed in from outside."""

from typing import Protocol

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


class Clock(Protocol):
    """A source of time. The only implementation that reads the system sits in ``transport``."""

    def now_ns(self) -> int:
        """Return Unix time in nanoseconds."""
        ...

    def monotonic_ns(self) -> int:
        """Return nanoseconds from an arbitrary start that never go back, for durations."""
        ...


class ManualClock:
    """A clock that stands still until told otherwise, for tests and virtual time."""

    def __init__(self, now_ns: int = 0) -> None:
        self._now_ns = now_ns

    def now_ns(self) -> int:
        """Return the time last set, Unix nanoseconds."""
        return self._now_ns

    def monotonic_ns(self) -> int:
        """Return the same as :meth:`now_ns`."""
        return self._now_ns

    def set_ns(self, now_ns: int) -> None:
        """Jump to *now_ns*, forwards or backwards."""
        self._now_ns = now_ns

    def advance_ns(self, delta_ns: int) -> None:
        """Move on by *delta_ns* nanoseconds."""
        self._now_ns += delta_ns
