"""Cut the tokens of engine blocks at the boundaries of the index's blocks.

Both sizes must divide evenly one way or the other: an engine block holds several index blocks, or
several engine blocks (pages) make up one. Everything else would tie a key to parts of blocks.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from inferencecache.events.blocks import Detail
from inferencecache.events.token_packing import TOKEN_BYTES
from inferencecache.fingerprint import SEED, packed_prefix_hashes

_pack_pair = struct.Struct("<QQ").pack


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
    packed: bytes, block_size: int, index_size: int, chain: int | None
) -> Iterator[Piece]:
    """Yield the pieces of engine blocks that each hold one or more index blocks."""
    per_block = block_size // index_size
    keys = packed_prefix_hashes(packed, index_size, chain)
    for start in range(0, len(keys) - per_block + 1, per_block):
        own = tuple(keys[start : start + per_block])
        yield Piece(chain=own[-1], parent_chain=chain, keys=own, tail=b"")
        chain = own[-1]


def cut_pages(
    packed: bytes, block_size: int, index_size: int, before: tuple[int | None, bytes]
) -> Iterator[Piece]:
    """Yield the pieces of engine blocks smaller than an index block.

    Args:
        packed: Tokens of all blocks, packed.
        block_size: Tokens per engine block, a divisor of *index_size*.
        index_size: Tokens per index block.
        before: Chain and tail of the parent.
    """
    chain, tail = before
    full, step = index_size * TOKEN_BYTES, block_size * TOKEN_BYTES
    for start in range(0, len(packed) - step + 1, step):
        tail += packed[start : start + step]
        if len(tail) < full:
            yield Piece(chain=chain, parent_chain=chain, keys=(), tail=tail)
            continue
        key = lone_key(tail, chain)
        yield Piece(chain=key, parent_chain=chain, keys=(key,), tail=b"")
        chain, tail = key, b""


def lone_key(packed: bytes, chain: int | None) -> int:
    """Return the key of a single block, as ``packed_prefix_hashes`` would, in a tenth of its time.

    Many events hold one block, and for those the set-up of a call made for long prompts is most of
    the work.
    """
    content = xxh3_64_intdigest(packed, SEED)
    return content if chain is None else xxh3_64_intdigest(_pack_pair(chain, content), SEED)
