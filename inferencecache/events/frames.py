"""Multipart messages of an engine's publisher and of its replay socket."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from inferencecache.errors import MalformedEventError

END_OF_REPLAY: Final = 2**64 - 1
"""The number in the frame that ends a replay; never a batch's."""

_NUMBER_BYTES: Final = 8
_LIVE_FRAMES: Final = 3
_REPLAY_FRAMES_MIN: Final = 2
_REPLAY_FRAMES_MAX: Final = 5


class Frame(NamedTuple):
    """One numbered message.

    Attributes:
        number: Sequence number, 0 for the first of an engine's life.
        payload: The event batch, not decoded.
    """

    number: int
    payload: bytes


def live_frame(parts: Sequence[bytes]) -> Frame:
    """Return the message in the parts a subscriber received: topic, number, payload.

    Raises:
        MalformedEventError: Another count of parts, or a number that is not 8 bytes.
    """
    if len(parts) != _LIVE_FRAMES:
        raise MalformedEventError(reason="frames", detail=f"{len(parts)} parts")
    return _frame(parts)


def replay_frame(parts: Sequence[bytes]) -> Frame | None:
    """Return the message in the parts of a replay; None for the end of the replay.

    Releases differ in what they put before the number, so parts are read from the end.

    Raises:
        MalformedEventError: As for :func:`live_frame`.
    """
    if not _REPLAY_FRAMES_MIN <= len(parts) <= _REPLAY_FRAMES_MAX:
        raise MalformedEventError(reason="frames", detail=f"{len(parts)} parts")
    frame = _frame(parts)
    return None if not frame.payload or frame.number == END_OF_REPLAY else frame


def replay_request(start: int) -> list[bytes]:
    """Return the parts that ask for every buffered message from number *start* on."""
    return [b"", start.to_bytes(_NUMBER_BYTES, "big")]


def _frame(parts: Sequence[bytes]) -> Frame:
    number, payload = parts[-2], parts[-1]
    if len(number) != _NUMBER_BYTES:
        raise MalformedEventError(reason="frames", detail=f"a number of {len(number)} bytes")
    return Frame(number=int.from_bytes(number, "big"), payload=payload)
