"""What engines say of their own load, for as long as it is fresh."""

from collections.abc import Set as AbstractSet
from typing import NamedTuple


class EngineSignal(NamedTuple):
    """What an engine's page said; None is what it did not say.

    Attributes:
        waiting: Requests in its queue.
        running: Requests that it works on.
        cache_usage: Share of its cache that is in use, 0 to 1.
    """

    waiting: int | None = None
    running: int | None = None
    cache_usage: float | None = None


class EngineSignals:
    """The last signal of each candidate.

    Args:
        stale_ns: After which time a signal says nothing any more.
    """

    def __init__(self, stale_ns: int) -> None:
        self._stale_ns = stale_ns
        self._signals: dict[str, tuple[int, EngineSignal]] = {}

    def __len__(self) -> int:
        return len(self._signals)

    def put(self, name: str, signal: EngineSignal, now_ns: int) -> None:
        """Take what the engine of the candidate *name* said at *now_ns*."""
        self._signals[name] = (now_ns, signal)

    def of(self, name: str, now_ns: int) -> EngineSignal | None:
        """Return what the engine of the candidate *name* said, None if that was too long ago."""
        if not self._signals:
            return None
        found = self._signals.get(name)
        if found is None or now_ns - found[0] > self._stale_ns:
            return None
        return found[1]

    def fresh(self, now_ns: int) -> int:
        """Return how many signals still say something."""
        return sum(now_ns - at_ns <= self._stale_ns for at_ns, _ in self._signals.values())

    def retain(self, names: AbstractSet[str]) -> None:
        """Forget all candidates but *names*."""
        self._signals = {name: kept for name, kept in self._signals.items() if name in names}
