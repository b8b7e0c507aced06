"""Keep bodies for a second attempt, within a limit for each and one for all."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class ReplayRoom:
    """How much may be kept.

    Attributes:
        body_bytes_max: Of one body.
        total_bytes_max: Of all together.
        taken_bytes: What is kept now.
    """

    body_bytes_max: int
    total_bytes_max: int
    taken_bytes: int = 0


class KeptBody:
    """The bytes of one body so far, or nothing once there was no room for all of them.

    Args:
        room: Shared with others.
    """

    __slots__ = ("_bytes", "_chunks", "_room", "is_whole")

    def __init__(self, room: ReplayRoom) -> None:
        self._room = room
        self._chunks: list[bytes] = []
        self._bytes = 0
        self.is_whole = True

    def __iter__(self) -> Iterator[bytes]:
        """Yield the chunks that are kept."""
        return iter(self._chunks)

    def keep(self, chunk: bytes) -> None:
        """Keep one more chunk; without room for it everything is let go."""
        if not self.is_whole:
            return
        size = len(chunk)
        is_too_large = self._bytes + size > self._room.body_bytes_max
        if is_too_large or self._room.taken_bytes + size > self._room.total_bytes_max:
            self.is_whole = False
            self.let_go()
            return
        self._chunks.append(chunk)
        self._bytes += size
        self._room.taken_bytes += size

    def let_go(self) -> None:
        """Free what is kept."""
        self.is_whole = self.is_whole and not self._bytes
        self._room.taken_bytes -= self._bytes
        self._bytes = 0
        self._chunks = []
