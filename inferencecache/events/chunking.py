"""Cut the tokens of engine blocks at the boundaries of the index's blocks.

Both sizes must divide evenly one way or the other: an engine block holds several index blocks, or
several engine blocks (pages) make up one. Everything else would tie a key to parts of blocks.
"""

import sys
from array import array
from collections.abc import Iterator
from typing import NamedTuple

from inferencecache.events.blocks import Detail
from inferencecache.fingerprint import prefix_hashes

TOKEN_BYTES = 4


class Piece(NamedTuple):
    """Where one engine block stands.

    Attributes:
        chain: Prefix hash at the last index boundary; None before the first.
        parent_chain: Prefix hash before the block's first key.
        keys: The keys it completes.
        tail: Packed tokens after the last boundary.
    """

    chain: int | None
    parent_chain: int | None
    keys: tuple[int, ...]
    tail: bytes

    def detail(self) -> Detail | None:
        """Return what has to be kept besides *chain*, None for nothing."""
        if not self.tail and self.keys == (self.chain,):
            return None
        return Detail(keys=self.keys, tail=self.tail)


def fits(block_size: int, index_size: int, tail: bytes) -> bool:
    """Tell whether engine blocks of *block_size* after *tail* meet the index's boundaries."""
    if block_size % index_size == 0:
        return not tail
    return index_size % block_size == 0 and len(tail) % (block_size * TOKEN_BYTES) == 0


def cut_multiples(
    tokens: list[int], block_size: int, index_size: int, chain: int | None
) -> Iterator[Piece]:
    """Yield the pieces of engine blocks that each hold one or more index blocks."""
    per_block = block_size // index_size
    keys = prefix_hashes(tokens, index_size, chain)
    for start in range(0, len(keys) - per_block + 1, per_block):
        own = tuple(keys[start : start + per_block])
        yield Piece(chain=own[-1], parent_chain=chain, keys=own, tail=b"")
        chain = own[-1]


def cut_pages(
    tokens: list[int], block_size: int, index_size: int, before: tuple[int | None, bytes]
) -> Iterator[Piece]:
    """Yield the pieces of engine blocks smaller than an index block.

    Args:
        tokens: Tokens of all blocks.
        block_size: Tokens per engine block, a divisor of *index_size*.
        index_size: Tokens per index block.
        before: Chain and tail of the parent.
    """
    chain, tail = before
    full = index_size * TOKEN_BYTES
    for start in range(0, len(tokens) - block_size + 1, block_size):
        tail += pack(tokens[start : start + block_size])
        if len(tail) < full:
            yield Piece(chain=chain, parent_chain=chain, keys=(), tail=tail)
            continue
        key = prefix_hashes(unpack(tail), index_size, chain)[0]
        yield Piece(chain=key, parent_chain=chain, keys=(key,), tail=b"")
        chain, tail = key, b""


def pack(tokens: list[int]) -> bytes:
    """Return token ids as 4 bytes little-endian each; they were checked when decoded."""
    packed = array("I", tokens)
    if sys.byteorder == "big":  # pragma: no cover - the hosts of our tests are little-endian
        packed.byteswap()
    return packed.tobytes()


def unpack(data: bytes) -> list[int]:
    """Undo :func:`pack`."""
    packed = array("I", data)
    if sys.byteorder == "big":  # pragma: no cover - the hosts of our tests are little-endian
        packed.byteswap()
    return packed.tolist()
