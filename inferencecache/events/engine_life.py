"""Tell a repeated message from the first messages of a restarted engine.

Numbers start again at 0 when an engine restarts, and the transport reconnects without a word. A
number that has passed is therefore either a repetition or a new life. Every message of a life has
its own time and length, so a number seen with other ones means that the engine is another. Where
the time is not at the place where engines put it, a checksum of the content stands for it.
"""

from enum import Enum
from zlib import crc32

from inferencecache.events.frames import Frame
from inferencecache.events.wire_values import peek_timestamp_ns

Mark = tuple[int, int]
"""Time of a message, or a checksum where there is none, and length."""


class Verdict(Enum):
    """What a message whose number has passed is."""

    DUPLICATE = "duplicate"
    RESTART = "restart"


def mark_of(frame: Frame) -> Mark:
    """Return what tells *frame* from another message of the same number."""
    payload = frame.payload
    return peek_timestamp_ns(payload) or crc32(payload), len(payload)


class EngineLife:
    """What was seen since the engine started.

    Args:
        marks_max: Messages remembered; the oldest go.

    Attributes:
        latest_ns: Time of the newest message by the engine's clock, 0 before the first.
    """

    __slots__ = ("_first", "_marks", "_marks_max", "latest_ns")

    def __init__(self, marks_max: int) -> None:
        self.latest_ns = 0
        self._marks_max = marks_max
        self._marks: dict[int, Mark] = {}
        self._first: Mark | None = None

    def note(self, frame: Frame) -> None:
        """Remember a message that is being applied."""
        mark = mark_of(frame)
        self.latest_ns = max(self.latest_ns, peek_timestamp_ns(frame.payload))
        if frame.number == 0:
            self._first = mark
        self._marks[frame.number] = mark
        if len(self._marks) > self._marks_max:
            del self._marks[next(iter(self._marks))]

    def recalls(self, frame: Frame) -> bool | None:
        """Tell whether *frame* is the message seen under its number; None if none is on record."""
        known = self._first if frame.number == 0 else self._marks.get(frame.number)
        return None if known is None else known == mark_of(frame)

    def judge(self, frame: Frame) -> Verdict:
        """Decide about a live message whose number has passed."""
        is_same = self.recalls(frame)
        if is_same is not None:
            return Verdict.DUPLICATE if is_same else Verdict.RESTART
        if frame.number == 0 or peek_timestamp_ns(frame.payload) > self.latest_ns:
            return Verdict.RESTART
        return Verdict.DUPLICATE
