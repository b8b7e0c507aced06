r"""Cut entries of one block each out of a serialised update without an object per entry.

Producers send a chain as one entry per block. Such an entry is its hash and a tail that says the
rest; the hashes all differ, the tails in nothing but the count::

    32 0d 0a 08 <hash> 10 80 01       prefixes: prefix_hash, token_count 128
    32 0d 0a 08 <hash> 10 90 01       the next block, token_count 144
          ~~~~~        ~~               columns of one value
                          ~~~~~         columns of the count

Theory of operation: records of one tag and one length stand at equal distances, so each of their
bytes makes a column, one slice of the message. The hash's columns are copied to where packed blocks
have them. The count's become numbers all at once, each in four bytes of one long integer: a varint
has seven bits in each byte, and shifting all lanes moves all of them together. Every other column
must hold one value; then the entries mean what the first one does, but for hash and count. What has
another shape is left to the library.

Source: the Protocol Buffers encoding guide, sections on message structure and varints.
"""

from collections.abc import Sequence
from functools import lru_cache
from struct import pack, unpack
from typing import Final, NamedTuple

from inferencecache.index import PackedHashes
from inferencecache.index.packing import OVERHEAD
from inferencecache.transport.wire_chain import (
    MORE,
    find_field,
    tag_of,
)
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

Kind = tuple[int, str]
"""Tier as on the wire, and adapter."""

HEAD_BYTES: Final = 2
"""The tag and the length of an entry's hash."""

TAIL_BYTES_MAX: Final = 64
"""Longest tail worth remembering; it bounds what a peer can make us remember."""

_WIDTH_MAX: Final = 127
"""Longest hash whose length takes one byte."""

_TAILS_MAX: Final = 16_384
"""Tails remembered: a prompt of a quarter million tokens in blocks of 16 has as many."""

_PREFIXES_TAG: Final = tag_of(pb.CacheStateUpdate.DESCRIPTOR, "prefixes")
_HASH_TAG: Final = tag_of(pb.PrefixEntry.DESCRIPTOR, "prefix_hash")[0]

_MESSAGE_BYTES_MIN: Final = 256
"""Shorter messages are read faster by the library."""

_RUNS_MAX: Final = 8
"""Stretches of entries of one length: a chain's counts take one to four bytes."""

_COUNT_BYTES_MAX: Final = 4
"""Longest count read here, 28 bits; four times seven fit a lane."""

_LANE_BYTES: Final = 4
_LANE_BITS: Final = 8 * _LANE_BYTES
_LANES_MAX: Final = 4_096
"""Most entries read in one step, which takes less than looking at 512 of them one by one."""

_LANE: Final = (1 << _LANE_BITS) - 1
_VARINT_BITS: Final = 7
_CONTINUED: Final = bytes(range(MORE, 256))
"""The bytes of a varint that are not its last one."""

_ONES: Final = int.from_bytes(pack("<I", 1) * _LANES_MAX, "little")
"""1 in each lane."""

_PLACES: Final = int.from_bytes(pack(f"<{_LANES_MAX}I", *range(_LANES_MAX)), "little")
"""Each lane's own number."""


class Entries(NamedTuple):
    """Entries of one block each that follow one another and are of one kind.

    Attributes:
        kind: Their tier and adapter.
        hashes: The blocks.
        counts: Tokens up to each of them.
    """

    kind: Kind
    hashes: PackedHashes
    counts: Sequence[int]


class _Group:
    """Entries of one kind and one width of hash, while more are added.

    Attributes:
        kind: Their tier and adapter.
        width: Bytes of each hash.
        packed: The hashes as the index packs blocks.
        lanes: The counts as they are on the wire, each in bytes of its own.
    """

    __slots__ = ("kind", "lanes", "packed", "width")

    def __init__(self, kind: Kind, width: int) -> None:
        self.kind = kind
        self.width = width
        self.packed = bytearray()
        self.lanes = bytearray()

    def add(self, hashes: list[bytes], counts: list[bytes], entries: int) -> None:
        """Add entries, given as the columns of their hashes and of their counts."""
        stride = self.width + OVERHEAD
        packed = bytearray(entries * stride)
        packed[::stride] = bytes((self.width,)) * entries
        for place, column in enumerate(hashes, start=1):
            packed[place::stride] = column
        lanes = bytearray(entries * _LANE_BYTES)
        for place, column in enumerate(counts):
            lanes[place::_LANE_BYTES] = column
        self.packed += packed
        self.lanes += lanes

    def read(self) -> Entries:
        """Return what was added."""
        hashes = PackedHashes(bytes(self.packed), self.width)
        return Entries(self.kind, hashes, _numbers(self.lanes))


def cut_entries(data: bytes) -> tuple[list[Entries], bytes] | None:
    """Return the entries of an update, and the message without them.

    The caller reads the rest, and must find no further entry in it.

    Args:
        data: A serialised CacheStateUpdate.

    Returns:
        Both, None where the entries have another shape or are very many.

    Raises:
        DecodeError: One of them does not parse.

    Complexity: O(bytes), about 0.1 us for an entry.
    """
    start = at = find_field(data, _PREFIXES_TAG[0]) if len(data) >= _MESSAGE_BYTES_MIN else -1
    groups: list[_Group] = []
    for _ in range(_RUNS_MAX):
        if at < 0 or not data.startswith(_PREFIXES_TAG, at):
            break
        stop = _end_of_run(data, at)
        if stop == at or not _add_run(groups, data, at, stop):
            return None
        at = stop
    if not groups:
        return None
    return [group.read() for group in groups], data[:start] + data[at:]


def _end_of_run(data: bytes, start: int) -> int:
    """Return where the records end that have the length of the one at *start*; *start* for none."""
    length = data[start + 1 : start + 2]
    if not length or length[0] >= MORE:
        return start
    stride = length[0] + HEAD_BYTES
    tags, lengths = data[start::stride], data[start + 1 :: stride]
    records = min(
        len(tags) - len(tags.lstrip(_PREFIXES_TAG)),
        len(lengths) - len(lengths.lstrip(length)),
        (len(data) - start) // stride,
    )
    return start + records * stride


def _add_run(groups: list[_Group], data: bytes, start: int, stop: int) -> bool:
    """Add records of one length to the last of *groups* or a new one; tell whether that works."""
    stride = data[start + 1] + HEAD_BYTES
    shape = _shape(data[start + HEAD_BYTES : start + stride])
    if shape is None:
        return False
    kind, width, count_bytes = shape
    columns = [data[at:stop:stride] for at in range(start + HEAD_BYTES, start + stride)]
    tail_at = HEAD_BYTES + width
    counts_end = tail_at + 1 + count_bytes
    counts = columns[tail_at + 1 : counts_end]
    others = columns[:HEAD_BYTES] + columns[tail_at : tail_at + 1] + columns[counts_end:]
    entries = len(columns[0])
    if not _are_counts(counts) or any(column.strip(column[:1]) for column in others):
        return False
    if not groups or (groups[-1].kind, groups[-1].width) != (kind, width):
        groups.append(_Group(kind, width))
    groups[-1].add(columns[HEAD_BYTES:tail_at], counts, entries)
    return sum(len(group.lanes) for group in groups) <= _LANES_MAX * _LANE_BYTES


def _shape(entry: bytes) -> tuple[Kind, int, int] | None:
    """Return an entry's kind, the width of its hash and that of its count; None for any other."""
    if not has_hash(entry[:HEAD_BYTES], len(entry)):
        return None
    width = entry[1]
    tail = entry[HEAD_BYTES + width :]
    meaning = tail_meaning(tail) if len(tail) <= TAIL_BYTES_MAX else None
    if meaning is None:
        return None
    kind, count = meaning
    count_bytes = -(-count.bit_length() // _VARINT_BITS) if count >= 0 else _COUNT_BYTES_MAX + 1
    return (kind, width, count_bytes) if count_bytes <= _COUNT_BYTES_MAX else None


def _are_counts(columns: list[bytes]) -> bool:
    """Tell whether each row of *columns* is one varint that takes no byte more than it needs."""
    if not columns:
        return True
    *others, last = columns
    if not last.isascii() or b"\0" in last:
        return False
    return not any(column.translate(None, _CONTINUED) for column in others)


def _numbers(lanes: bytearray) -> Sequence[int]:
    """Return the varints in *lanes*, as a range where they rise by equal steps."""
    entries = len(lanes) // _LANE_BYTES
    bits = int.from_bytes(lanes, "little")
    used = (1 << len(lanes) * 8) - 1
    ones = _ONES & used
    low = ones * (MORE - 1)
    numbers = bits & low
    for place in range(1, _LANE_BYTES):
        numbers |= bits >> place & low << place * _VARINT_BITS
    first, step = numbers & _LANE, (numbers >> _LANE_BITS & _LANE) - (numbers & _LANE)
    # No lane of the right side can run over where the two are equal: its last one is the largest.
    if step > 0 and numbers == ones * first + (_PLACES & used) * step:
        return range(first, first + step * entries, step)
    return list(unpack(f"<{entries}I", numbers.to_bytes(len(lanes), "little")))


def has_hash(head: bytes, size: int) -> bool:
    """Tell whether an entry of *size* bytes that begins with *head* begins with a whole hash."""
    if size <= HEAD_BYTES or head[0] != _HASH_TAG:
        return False
    return 0 < head[1] <= min(_WIDTH_MAX, size - HEAD_BYTES)


@lru_cache(maxsize=_TAILS_MAX)
def tail_meaning(tail: bytes) -> tuple[Kind, int] | None:
    """Return what *tail* says of the hash before it, None if it says more than that.

    Args:
        tail: At most :data:`TAIL_BYTES_MAX` bytes.

    Raises:
        DecodeError: It does not parse.
    """
    entry = pb.PrefixEntry.FromString(tail)
    if entry.prefix_hash or entry.block_hashes or entry.block_token_counts:
        return None
    # A field given twice, or given as empty, would override what came before it; the library
    # writes neither.
    if entry.SerializeToString(deterministic=True) != tail:
        return None
    return (entry.tier, entry.adapter_id), entry.token_count
