"""Messages that came before one they have to follow, bounded in number and bytes."""

import heapq

from inferencecache.events.frames import Frame


class ReorderBuffer:
    """Waiting messages by number.

    Args:
        batches_max: Most messages kept.
        bytes_max: Most payload bytes kept.

    Attributes:
        bytes_total: Payload bytes kept.
    """

    __slots__ = ("_batches_max", "_bytes_max", "_frames", "_order", "bytes_total")

    def __init__(self, *, batches_max: int, bytes_max: int) -> None:
        self._batches_max = batches_max
        self._bytes_max = bytes_max
        self._frames: dict[int, tuple[Frame, bool]] = {}
        self._order: list[int] = []
        self.bytes_total = 0

    def __len__(self) -> int:
        return len(self._frames)

    def get(self, number: int) -> Frame | None:
        """Return the message of *number* without taking it."""
        found = self._frames.get(number)
        return None if found is None else found[0]

    def add(self, frame: Frame, *, is_live: bool) -> bool:
        """Keep *frame*; False if it had to be refused. A number already kept stays as it is."""
        if frame.number in self._frames:
            return True
        size = len(frame.payload)
        if len(self._frames) >= self._batches_max or self.bytes_total + size > self._bytes_max:
            return False
        self._frames[frame.number] = (frame, is_live)
        heapq.heappush(self._order, frame.number)
        self.bytes_total += size
        return True

    def take(self, number: int) -> tuple[Frame, bool] | None:
        """Remove and return the message of *number* and whether it came live."""
        found = self._frames.pop(number, None)
        if found is not None:
            self.bytes_total -= len(found[0].payload)
            if not self._frames:
                self._order.clear()
        return found

    def lowest(self) -> int | None:
        """Return the lowest number kept, None if there is none."""
        while self._order and self._order[0] not in self._frames:
            heapq.heappop(self._order)
        return self._order[0] if self._order else None

    def clear(self) -> None:
        """Drop everything."""
        self._frames.clear()
        self._order.clear()
        self.bytes_total = 0
