"""Cut a chain of block hashes out of a serialised message without making an object per block.

Messages carry chains as one record per hash, and the counts packed behind them::

    3a 08 <hash>   hashes, 512 records             one slice of the message, packed for comparing
    42 80 04 ..    token counts, packed            one slice of the message

Theory of operation: records of one tag and one length stand at equal distances, so comparing bytes
at those distances is a parse. Whatever has another shape is left to the library.

Source: the Protocol Buffers encoding guide, sections on message structure and packed fields.
"""

from collections.abc import Sequence
from typing import Final

from google.protobuf.descriptor import Descriptor

from inferencecache.index import PackedHashes

VARINT: Final = 0
LENGTH_DELIMITED: Final = 2
KIND_BITS: Final = 3
KIND_MASK: Final = 7
MORE: Final = 0x80
"""Set in every byte of a varint but its last one."""

_VARINT_BYTES_MAX: Final = 4
"""Longest varint read here: no message has more than 2**28 bytes."""

_PASSED_BYTES_MAX: Final = 1_024
"""Most bytes of fields passed over, which happens one by one: each once, and none long, is less."""


CutChain = tuple[PackedHashes, Sequence[int] | None, bytes]
"""The blocks, their token counts, and the message without both.

The counts are None where the library has to read them in what is left.
"""


class ChainCutter:
    """Cuts chains out of messages of one type.

    Args:
        descriptor: The message type; it has ``block_hashes`` and ``block_token_counts``.
    """

    __slots__ = ("_counts_tag", "_hashes_tag")

    def __init__(self, descriptor: Descriptor) -> None:
        self._hashes_tag = tag_of(descriptor, "block_hashes")
        self._counts_tag = tag_of(descriptor, "block_token_counts")

    def cut(self, data: bytes, blocks_max: int | None = None) -> CutChain | None:
        """Return the chain in *data*, None where it has none or has it in another shape.

        The caller reads the rest, and must find no further hash or count in it.

        Args:
            data: The message.
            blocks_max: Blocks and counts that are wanted, None for all.
        """
        tag = self._hashes_tag
        start = 0 if data.startswith(tag) else find_field(data, tag[0])
        stop = _end_of_records(data, start, tag) if start >= 0 else -1
        if stop < 0:
            return None
        counts, after = _counts_at(data, stop, self._counts_tag)
        rest = data[:start] + data[after:]
        if blocks_max is not None:
            stop = min(stop, start + blocks_max * (data[start + 1] + 2))
            counts = counts and counts[:blocks_max]
        return _packed(data, start, stop), counts, rest


def tag_of(descriptor: Descriptor, name: str) -> bytes:
    """Return what a field of records begins with; its number is below 16.

    Args:
        descriptor: The message type.
        name: The field.
    """
    return bytes((descriptor.fields_by_name[name].number << KIND_BITS | LENGTH_DELIMITED,))


def find_field(data: bytes, wanted: int) -> int:
    """Return where the first field tagged *wanted* begins, -1 after anything that is not plain.

    Plain are fields with a tag of one byte that hold a varint or fewer than 128 bytes, as long as
    they are few.

    Complexity: O(1), about 0.2 us for a field.
    """
    at, size = 0, len(data)
    size = _PASSED_BYTES_MAX if size > _PASSED_BYTES_MAX else size - 1
    while at < size:
        tag = data[at]
        if tag == wanted:
            return at
        kind = tag & KIND_MASK
        at += 1
        if tag >= MORE or kind not in (VARINT, LENGTH_DELIMITED):
            return -1
        if kind == LENGTH_DELIMITED and data[at] < MORE:
            at += 1 + data[at]
        elif kind == VARINT:
            while at < size and data[at] >= MORE:
                at += 1
            at += 1
        else:
            return -1
    return -1


def _end_of_records(data: bytes, start: int, tag: bytes) -> int:
    """Return where the records like the one at *start* end, -1 where that is not certain.

    If every record up to some point has the same tag and length as the first, the next one begins
    exactly there: so comparing bytes at equal distances is a parse.
    """
    width = data[start + 1] if start + 1 < len(data) else 0
    if not 0 < width < MORE:
        return -1
    stride = width + 2
    tags = data[start::stride]
    records = tags.rfind(tag) + 1
    # Bytes of later fields may look like tags at this distance; then there are fewer records.
    if tags[:records] != tag * records:
        records = len(tags) - len(tags.lstrip(tag))
    stop = start + records * stride
    lengths = data[start + 1 : stop : stride]
    if stop > len(data) or lengths != lengths[:1] * records:
        return -1
    return stop


def _packed(data: bytes, start: int, stop: int) -> PackedHashes:
    """Return records as the index packs blocks: length, hash and a pad, without the tag."""
    width = data[start + 1]
    stride = width + 2
    # The last record's pad is the byte after it, if there is one.
    packed = bytearray(data[start + 1 : stop + 1])
    if stop == len(data):
        packed.append(0)
    packed[width + 1 :: stride] = bytes(len(packed) // stride)
    return PackedHashes(packed, width)


def _counts_at(data: bytes, at: int, tag: bytes) -> tuple[Sequence[int] | None, int]:
    """Return the token counts at *at* and where they end, or None and *at* for the library.

    Counts below 128 take one byte each, so the field's content is the sequence of them. A larger
    count, the same for every block, is read once.
    """
    if not data.startswith(tag, at):
        return None, at
    size, width = varint_at(data, at + 1)
    begin = at + 1 + width
    end = begin + size
    content = data[begin:end]
    if not size or len(content) < size:
        return None, at
    if content.isascii():
        return content, end
    count, width = varint_at(content, 0)
    if content == content[:width] * (size // width if width else 0):
        return [count] * (size // width), end
    return None, at


def varint_at(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at *at* and its width; 0 and 0 if it has more than four bytes."""
    head = data[at : at + _VARINT_BYTES_MAX]
    if head and head[0] < MORE:
        return head[0], 1
    value = 0
    for place, byte in enumerate(head):
        value |= (byte & MORE - 1) << 7 * place
        if byte < MORE:
            return value, place + 1
    return 0, 0
