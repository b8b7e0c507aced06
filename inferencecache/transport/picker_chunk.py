"""Body chunks on the wire, without a copy where the message library would make two.

A chunk is a tag, a length and bytes; whatever else a message may legally look like, say with fields
of a later version, the library reads.
"""

from typing import Final

from google.protobuf.message import DecodeError

from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.bodies import Chunk

_TAG: Final = 0x0A
_VARINT_BYTES_MAX: Final = 5
_MORE: Final = 0x80


def read_chunk(message: bytes) -> Chunk | None:
    """Return the bytes of a ``BodyChunk``, or None where *message* is none."""
    if message and message[0] == _TAG:
        length, start = _varint(message, 1)
        if len(message) - start == length:
            return memoryview(message)[start:]
    try:
        return pb.BodyChunk.FromString(message).chunk
    except DecodeError:
        return None


class OutgoingChunk:
    """A ``BodyChunk`` that knows how to become bytes.

    Args:
        piece: Its content.
    """

    __slots__ = ("_piece",)

    def __init__(self, piece: Chunk) -> None:
        self._piece = piece

    def SerializeToString(self) -> bytes:  # noqa: N802 - what messages call it
        """Return the message as bytes."""
        length = len(self._piece)
        header = bytearray([_TAG])
        while length >= _MORE:
            header.append(length % _MORE | _MORE)
            length //= _MORE
        header.append(length)
        return b"".join((header, self._piece))


def _varint(message: bytes, start: int) -> tuple[int, int]:
    """Return the number that begins at *start*, -1 if there is none, and where it ends."""
    number = 0
    for place, byte in enumerate(message[start : start + _VARINT_BYTES_MAX]):
        number |= (byte % _MORE) << (7 * place)
        if byte < _MORE:
            return number, start + place + 1
    return -1, start
