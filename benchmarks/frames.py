"""HTTP/2 frames as far as a gRPC client needs them, written and read in as few steps as may be.

Headers are never indexed, so a block means the same whenever it comes, and what it says is
remembered by its bytes.
"""

from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from struct import iter_unpack, pack
from typing import Final, NamedTuple

from hpack import Decoder

from benchmarks.measure import require

DATA: Final = 0
HEADERS: Final = 1
SETTINGS: Final = 4
PING: Final = 6
WINDOW_UPDATE: Final = 8

END_STREAM: Final = 1
ACK: Final = 1
END_HEADERS: Final = 4
_PADDED: Final = 8

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD_BYTES: Final = 9
_SHORT_MAX: Final = 126
"""Longest name or value whose length is one byte."""

_BLOCKS_KEPT: Final = 64


class Setting(IntEnum):
    """Settings that matter here."""

    HEADER_TABLE_SIZE = 1
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5


class Frame(NamedTuple):
    """A frame.

    Attributes:
        kind: One of the numbers above.
        flags: Their meaning depends on the kind.
        stream: Its stream, 0 for the connection.
        payload: What it carries.
    """

    kind: int
    flags: int
    stream: int
    payload: bytes


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return a frame as bytes."""
    return pack(">HBBBI", len(payload) >> 8, len(payload) & 255, kind, flags, stream) + payload


def window_update(stream: int, more_bytes: int) -> bytes:
    """Return the frame that lets the other side send *more_bytes*."""
    return frame(WINDOW_UPDATE, 0, stream, number_bytes(more_bytes))


def settings(values: dict[Setting, int]) -> bytes:
    """Return the frame that states settings."""
    pairs = (pack(">HI", name, value) for name, value in values.items())
    return frame(SETTINGS, 0, 0, b"".join(pairs))


def read_settings(payload: bytes) -> dict[int, int]:
    """Return what a frame of settings says."""
    return dict(iter_unpack(">HI", payload))


def number_bytes(number: int) -> bytes:
    """Return a number of four bytes."""
    return number.to_bytes(4, "big")


class FrameReader:
    """Cuts what comes in into frames."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete with *data*."""
        data = self._rest + data if self._rest else data
        at, end = 0, len(data)
        while end - at >= _HEAD_BYTES:
            stop = at + _HEAD_BYTES + int.from_bytes(data[at : at + 3], "big")
            if stop > end:
                break
            flags, stream = data[at + 4], int.from_bytes(data[at + 5 : at + _HEAD_BYTES], "big")
            require(data[at + 3] > HEADERS or not flags & _PADDED, "nothing is padded")
            yield Frame(data[at + 3], flags, stream, data[at + _HEAD_BYTES : stop])
            at = stop
        self._rest = data[at:]


def header_block(headers: dict[bytes, bytes]) -> bytes:
    """Return headers as bytes; names and values are short."""
    parts = []
    for text in (text for pair in headers.items() for text in pair):
        require(len(text) <= _SHORT_MAX, "headers are short")
        parts.append(bytes([len(text)]) + text)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return b"".join(b"\0" + name + value for name, value in pairs)


@lru_cache(_BLOCKS_KEPT)
def headers_of(block: bytes) -> dict[bytes, bytes]:
    """Return what the other side says, which has been told to index nothing."""
    decoder = Decoder()
    decoder.max_allowed_table_size = decoder.header_table_size = 0
    return dict(decoder.decode(block, raw=True))
