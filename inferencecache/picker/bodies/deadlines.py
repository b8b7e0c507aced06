"""When something is due, for many things of which most are never due.

Rules of this file: one moment per key, moved at will; a key leaves by being due or dropped.

Theory of operation: a heap with one live item per key. Moving a moment further away, what every
chunk of an upload does, changes only the table; the item is put back when it comes up. Items of
dropped keys are skipped, and swept out when they are the greater part, so that the heap never holds
more than about twice as many items as there are keys.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Final

_STALE_MIN: Final = 1_024


class Deadlines:
    """Moments by key."""

    __slots__ = ("_at", "_heap", "_queued")

    def __init__(self) -> None:
        self._at: dict[int, int] = {}
        self._queued: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._at)

    def set(self, key: int, at_ns: int) -> None:
        """Make *key* due at *at_ns*, whatever held before."""
        self._at[key] = at_ns
        queued_ns = self._queued.get(key)
        if queued_ns is None or at_ns < queued_ns:
            self._queued[key] = at_ns
            heappush(self._heap, (at_ns, key))

    def drop(self, key: int) -> None:
        """Forget *key*, known or not."""
        self._at.pop(key, None)
        self._queued.pop(key, None)
        if len(self._heap) > 2 * len(self._at) + _STALE_MIN:
            self._heap = [(at_ns, key) for key, at_ns in self._at.items()]
            self._queued = dict(self._at)
            heapify(self._heap)

    def due(self, now_ns: int) -> Iterator[int]:
        """Yield and forget the keys whose moment has come, earliest first."""
        while self._heap and self._heap[0][0] <= now_ns:
            item_ns, key = heappop(self._heap)
            if self._queued.get(key) != item_ns:
                continue
            at_ns = self._at[key]
            if at_ns <= now_ns:
                del self._at[key], self._queued[key]
                yield key
            else:
                self._queued[key] = at_ns
                heappush(self._heap, (at_ns, key))
