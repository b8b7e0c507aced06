"""Cut a long serialised message into pieces, none of which takes long to parse.

How long a parse takes depends on the fields, not on the bytes: 16 MiB of empty fields are eight
million of them, and the library reads a message in one go. Merging a message's fields in order,
some at a time, gives what reading it whole does; so a piece is a few whole fields, and what is read
between two pieces may wait::

    0a 01 72 | 32 0a <entry> 32 0a <entry> .. | 32 0a <entry> .. | 42 80 80 04 <packed numbers>

Theory of operation: only the bounds of fields are looked for here. Those of records of one tag and
one length, as long messages have them, stand at equal distances and are compared all at once.
Whether a piece is valid is the library's to say.

Rules of this file: groups are refused, which no client has written since proto3; so is a long
message within the message, for the ones that there are hold a few numbers and names.

Source: the Protocol Buffers encoding guide, sections on message structure and packed fields.
"""

from collections.abc import Iterator
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from inferencecache.transport.wire_chain import (
    KIND_BITS,
    KIND_MASK,
    LENGTH_DELIMITED,
    MORE,
    VARINT,
)

PIECE_BYTES: Final = 32_768
"""Longest piece, but for one that is a single text or bytes field."""

PIECE_FIELDS: Final = 2_048
"""Most fields of a piece that are looked for one by one."""

_ALIKE_MIN: Final = 16
"""Fields of one length in a row after which more are looked for all at once."""

_LOOKS_MAX: Final = 1_048_576
"""Most fields that are looked for one by one in all; a message with more is refused."""

_LOOKS_OF_OTHERS: Final = 4
"""How many of the usual fields one of another kind counts for: it takes as long."""

_SHORT_TAGS: Final = frozenset(range(LENGTH_DELIMITED, MORE, KIND_MASK + 1))
"""Tags of one byte of fields that say how long they are."""

_FIXED_BYTES: Final = {1: 8, 5: 4}
"""Bytes that fields of the other two kinds have."""

_VARINT_BYTES_MAX: Final = 10

_CONTINUES: Final = bytes(range(0x80, 0xC0))
"""Bytes of UTF-8 that do not begin a character."""

_CONTINUES_MAX: Final = 3
"""Most of them in a row."""


class MessagePieces:
    """Cuts messages of one type.

    Args:
        descriptor: The message type.
        text_bytes_max: Most bytes of a text that are of interest: a longer one is cut off somewhat
            beyond them.
    """

    __slots__ = ("_nested", "_packed", "_text_bytes_max", "_texts")

    def __init__(self, descriptor: Descriptor, text_bytes_max: int) -> None:
        fields = descriptor.fields
        self._nested = {f.number for f in fields if f.type == FieldDescriptor.TYPE_MESSAGE}
        self._texts = {f.number for f in fields if f.type == FieldDescriptor.TYPE_STRING}
        self._packed = {f.number for f in fields if f.is_packed}
        self._text_bytes_max = text_bytes_max

    def cut(self, data: bytes) -> Iterator[bytes]:
        """Yield *data* in pieces that, merged in order, are the message.

        Args:
            data: The message.

        Raises:
            DecodeError: It is no valid message, or has a field that is not taken.

        Complexity: O(fields), of those alike and in a row a small part; the work between two
            pieces is bounded.
        """
        at = looks = 0
        while at < len(data):
            stop, more = _end_of_fields(data, at)
            looks += more
            if looks > _LOOKS_MAX:
                raise DecodeError
            if stop > at:
                yield data[at:stop]
            else:
                stop = _field_end(data, at)
                yield from self._cut_field(data, at, stop)
            at = stop

    def _cut_field(self, data: bytes, at: int, end: int) -> Iterator[bytes]:
        """Yield the long field from *at* to *end*."""
        tag, after = _varint(data, at)
        _, begin = _varint(data, after)
        number = tag >> KIND_BITS
        head = data[at:after]
        if number in self._nested:
            raise DecodeError
        if number in self._packed:
            while begin < end:
                stop = _end_of_varints(data, begin, end)
                yield head + _written(stop - begin) + data[begin:stop]
                begin = stop
        elif number in self._texts and end - begin > self._text_bytes_max:
            stop = _end_of_character(data, begin + self._text_bytes_max + 1, end)
            yield head + _written(stop - begin) + data[begin:stop]
        else:
            yield data[at:end]


def _end_of_fields(data: bytes, at: int) -> tuple[int, int]:
    """Return where the fields from *at* on end that make one piece, and how many looks that took.

    The piece is empty where its first field is too long.

    Raises:
        DecodeError: One of them is cut off or of a kind that is not taken.
    """
    limit = min(at + PIECE_BYTES, len(data))
    last_at, last, alike, looks = limit - 1, 0, 0, 0
    while at < limit and looks < PIECE_FIELDS:
        tag = data[at]
        # Most fields of long messages are of this kind.
        if tag in _SHORT_TAGS and at < last_at and data[at + 1] < MORE:
            end = at + 2 + data[at + 1]
            looks += 1
        else:
            end = _field_end(data, at)
            looks += _LOOKS_OF_OTHERS
        if end > limit:
            break
        alike = alike + 1 if end - at == last else 0
        last = end - at
        at = end
        if alike == _ALIKE_MIN:
            at, alike = _end_of_alike(data, at, last, limit), 0
    return at, looks


def _field_end(data: bytes, at: int) -> int:
    """Return where the field at *at* ends.

    Raises:
        DecodeError: It is cut off or of a kind that is not taken.
    """
    tag, at = _varint(data, at)
    kind = tag & KIND_MASK
    if kind == LENGTH_DELIMITED:
        size, at = _varint(data, at)
        at += size
    elif kind == VARINT:
        _, at = _varint(data, at)
    elif kind in _FIXED_BYTES:
        at += _FIXED_BYTES[kind]
    else:
        raise DecodeError
    if at > len(data):
        raise DecodeError
    return at


def _end_of_alike(data: bytes, at: int, stride: int, limit: int) -> int:
    """Return where the fields end that have the tag and the length of the one before *at*."""
    tag, length = data[at - stride : at - stride + 1], data[at - stride + 1 : at - stride + 2]
    if tag[0] >= MORE or tag[0] & KIND_MASK != LENGTH_DELIMITED or length[0] != stride - 2:
        return at
    tags, lengths = data[at:limit:stride], data[at + 1 : limit : stride]
    alike = min(
        len(tags) - len(tags.lstrip(tag)),
        len(lengths) - len(lengths.lstrip(length)),
        (limit - at) // stride,
    )
    return at + alike * stride


def _end_of_varints(data: bytes, begin: int, end: int) -> int:
    """Return where the numbers from *begin* on end that make one piece, *end* at the latest.

    Raises:
        DecodeError: A number has too many bytes.
    """
    stop = begin + PIECE_BYTES
    if stop >= end:
        return end
    for at in range(stop, stop - _VARINT_BYTES_MAX, -1):
        if data[at - 1] < MORE:
            return at
    raise DecodeError


def _end_of_character(data: bytes, at: int, end: int) -> int:
    """Return where the character of a text ends that *at* may be in.

    Raises:
        DecodeError: The text is not UTF-8.
    """
    more = data[at : min(at + _CONTINUES_MAX + 1, end)]
    continues = len(more) - len(more.lstrip(_CONTINUES))
    if continues > _CONTINUES_MAX:
        raise DecodeError
    return at + continues


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at *at* and where it ends.

    Raises:
        DecodeError: It is cut off or too long.
    """
    head = data[at : at + _VARINT_BYTES_MAX]
    if head and head[0] < MORE:
        return head[0], at + 1
    value = 0
    for place, byte in enumerate(head):
        value |= (byte & MORE - 1) << 7 * place
        if byte < MORE:
            return value, at + place + 1
    raise DecodeError


def _written(size: int) -> bytes:
    """Return *size* as a varint."""
    written = bytearray()
    while size >= MORE:
        written.append(size & MORE - 1 | MORE)
        size >>= 7
    written.append(size)
    return bytes(written)
