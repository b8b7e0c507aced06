"""Blocks of one width, packed side by side so that runs compare with one ``memcmp``.

Each block takes ``width + 2`` bytes: its length in one byte, its hash, and a pad that is always
zero. A hash of another length therefore never packs to the same bytes as one of *width*, whatever
its content: ``[ab, cd]`` and ``[abc, d]`` differ in their first byte. That is what lets a whole
run be compared without looking at the length of each hash.

Worked example, width 2::

    pack([b"ab", b"cd"], 2)  ->  02 61 62 00  02 63 64 00
    pack([b"abc", b"d"], 2)  ->  03 61 62 63  01 64 00 00

Source: docs/adr/0002-runs.md.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final

WIDTH_MAX: Final = 253
"""Widest hash that can be packed: the length byte must tell ``width + 1`` from ``width``."""

OVERHEAD: Final = 2
"""Bytes a packed block takes beyond its hash."""

_PIECE_BLOCKS: Final = 512
_LARGE_PIECE_BLOCKS: Final = 1_024
"""Faster than two pieces, but the packers for every size up to this would take four times the
memory."""


@lru_cache(maxsize=1_024)
def _packer(width: int, blocks: int) -> Callable[..., bytes]:
    return Struct(f"{width + OVERHEAD}p" * blocks).pack


@lru_cache(maxsize=1_024)
def _unpacker(width: int, blocks: int) -> Callable[[bytes | bytearray], tuple[bytes, ...]]:
    return Struct(f"x{width}sx" * blocks).unpack


def pack(hashes: Sequence[bytes], width: int, start: int = 0, stop: int | None = None) -> bytes:
    """Pack *hashes*, of which those of *width* bytes keep their content.

    Args:
        hashes: Block hashes of any length.
        width: Hash width in bytes, 1 to :data:`WIDTH_MAX`.
        start: First block to pack.
        stop: Block to stop before, None for all.

    Returns:
        *width* + 2 bytes per block.

    Complexity: O(number of blocks), about 12 ns each.
    """
    if stop is None:
        stop = len(hashes)
    blocks = stop - start
    if blocks <= _PIECE_BLOCKS:
        piece = hashes if blocks == len(hashes) else hashes[start:stop]
        return _packer(width, blocks)(*piece)
    pieces = []
    while start < stop:
        size = min(stop - start, _PIECE_BLOCKS)
        if stop - start >= _LARGE_PIECE_BLOCKS:
            size = _LARGE_PIECE_BLOCKS
        pieces.append(_packer(width, size)(*hashes[start : start + size]))
        start += size
    return b"".join(pieces)


def is_uniform(packed: bytes, width: int) -> bool:
    """Tell whether every packed block has exactly *width* bytes.

    Complexity: O(number of blocks), about 2 ns each.
    """
    stride = width + OVERHEAD
    return packed[::stride] == bytes((width,)) * (len(packed) // stride)


def pack_uniform(hashes: Sequence[bytes]) -> bytes:
    """Pack *hashes* if all of them are as long as the first one, and not empty; else return b"".

    Args:
        hashes: Block hashes, at least one.

    Complexity: O(number of blocks), about 15 ns each.
    """
    width = len(hashes[0])
    if not 0 < width <= WIDTH_MAX:
        return b""
    packed = pack(hashes, width)
    return packed if is_uniform(packed, width) else b""


def pack_single(block_hash: bytes) -> bytes:
    """Pack one hash of any length; it is compared by dictionary probe only.

    Complexity: O(1).
    """
    if len(block_hash) <= WIDTH_MAX:
        return packed_block(block_hash)
    return b"\0%b\0" % block_hash


def unpack(packed: bytes | bytearray, stride: int) -> Sequence[bytes]:
    """Return the hashes of packed blocks of one width.

    Complexity: O(number of blocks), about 25 ns each.
    """
    blocks = len(packed) // stride
    if blocks <= _PIECE_BLOCKS:
        return _unpacker(stride - OVERHEAD, blocks)(packed)
    piece = _PIECE_BLOCKS * stride
    parts = (unpack(packed[at : at + piece], stride) for at in range(0, len(packed), piece))
    return [block_hash for part in parts for block_hash in part]


def packed_block(block_hash: bytes) -> bytes:
    """Return one hash of at most :data:`WIDTH_MAX` bytes packed.

    Complexity: O(1).
    """
    return b"%c%b\0" % (len(block_hash), block_hash)


def find(packed: bytes, stride: int, block_hash: bytes) -> int:
    """Return the position of *block_hash* among packed blocks, -1 if absent.

    Complexity: O(1) for the first and last block, O(number of blocks) otherwise.
    """
    needle = packed_block(block_hash)
    if packed.startswith(needle):
        return 0
    if packed.endswith(needle):
        return len(packed) // stride - 1
    at = packed.find(needle, 1)
    while at >= 0 and at % stride:
        at = packed.find(needle, at + 1)
    return at // stride if at >= 0 else -1


def common_blocks(
    left: bytes | bytearray, left_at: int, right: bytes, right_at: int, stride: int
) -> int:
    """Count the equal blocks that *left* and *right* have in a row.

    Args:
        left: Packed blocks.
        left_at: Byte offset in *left*, a multiple of *stride*.
        right: Packed blocks.
        right_at: Byte offset in *right*, a multiple of *stride*.
        stride: Bytes per packed block.

    Complexity: one comparison when all are equal, O(log blocks) of them otherwise.
    """
    shared = min(len(left) - left_at, len(right) - right_at)
    if left[left_at : left_at + shared] == right[right_at : right_at + shared]:
        return shared // stride
    low, high = 0, shared // stride
    while high - low > 1:
        middle = (low + high) // 2
        start, stop = low * stride, middle * stride
        if left[left_at + start : left_at + stop] == right[right_at + start : right_at + stop]:
            low = middle
        else:
            high = middle
    start = low * stride
    stop = start + stride
    if left[left_at + start : left_at + stop] == right[right_at + start : right_at + stop]:
        low += 1
    return low
