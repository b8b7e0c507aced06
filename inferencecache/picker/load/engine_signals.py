"""What engines say of their own load, for as long as it is fresh."""

from collections.abc import Set as AbstractSet
from typing import NamedTuple


class EngineSignal(NamedTuple):
    """What an engine's page said; None is what it did not say.

    Attributes:
        waiting: Requests in its queue.
        running: Requests that it works on.
        cache_usage: Share of its cache that is in use, 0 to 1.
        adapters: LoRA adapters that it works with.
        waiting_adapters: Those that requests in its queue wait for.
        adapters_max: With how many it can work at once.
    """

    waiting: int | None = None
    running: int | None = None
    cache_usage: float | None = None
    adapters: frozenset[str] | None = None
    waiting_adapters: frozenset[str] = frozenset()
    adapters_max: int | None = None


class EngineSignals:
    """The last signal of each candidate.

    Args:
        stale_ns: After which time a signal says nothing any more.

    Attributes:
        latest: By candidate, when it was heard, and what it said; not to be written to.
    """

    def __init__(self, stale_ns: int) -> None:
        self._stale_ns = stale_ns
        self.latest: dict[str, tuple[int, EngineSignal]] = {}

    def __len__(self) -> int:
        return len(self.latest)

    def put(self, name: str, signal: EngineSignal, now_ns: int) -> None:
        """Take what the engine of the candidate *name* said at *now_ns*."""
        self.latest[name] = (now_ns, signal)

    def of(self, name: str, now_ns: int) -> EngineSignal | None:
        """Return what the engine of the candidate *name* said, None if that was too long ago."""
        if not self.latest:
            return None
        found = self.latest.get(name)
        if found is None or now_ns - found[0] > self._stale_ns:
            return None
        return found[1]

    def fresh(self, now_ns: int) -> int:
        """Return how many signals still say something."""
        return sum(now_ns - at_ns <= self._stale_ns for at_ns, _ in self.latest.values())

    def retain(self, names: AbstractSet[str]) -> None:
        """Forget all candidates but *names*."""
        self.latest = {name: kept for name, kept in self.latest.items() if name in names}
