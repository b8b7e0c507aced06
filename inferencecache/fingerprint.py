"""Content fingerprint: token ids to the chain of block hashes that keys the index.

Theory of operation
-------------------
Token ids are cut into blocks of ``block_size_tokens``; a shorter tail is dropped, because engines
cache full blocks only. Two hashes exist per block:

* its *content hash*, over the block's own tokens, each written as 4 bytes little-endian;
* its *prefix hash*, over the previous prefix hash and this content hash, each written as 8 bytes
  little-endian. The first block has no predecessor: its prefix hash **is** its content hash,
  unless a parent is given, which then takes the predecessor's place.

A prefix hash therefore names all tokens from the start of the prompt to the end of its block. On
the wire it is 8 bytes **big-endian**, the one place where bytes go the other way round. Every hash
is XXH3-64 with seed 1337.

Worked example, blocks of 2 tokens (``golden_vectors/README.md`` shows every byte)::

    tokens    [1, 2, 3, 4, 5]
    blocks    [1, 2] [3, 4]                                 5 fills no block
    content   0x9581a6bbf9cef45a  0x24f1bf0c78a5ca72
    prefix    0x9581a6bbf9cef45a  0x51bdd8da9da7a8e2        second: over the two before it

>>> [hex(value) for value in content_hashes([1, 2, 3, 4, 5], 2)]
['0x9581a6bbf9cef45a', '0x24f1bf0c78a5ca72']
>>> [key.hex() for key in chain([1, 2, 3, 4, 5], 2)]
['9581a6bbf9cef45a', '51bdd8da9da7a8e2']
>>> [key.hex() for key in chain([3, 4, 5], 2, parent=0x9581a6bbf9cef45a)]
['51bdd8da9da7a8e2']

Rules of this file
------------------
* The scheme is frozen: producers and gateways in other languages compute the same bytes.
* Time goes into the loop over blocks; what can be done for all blocks at once is done by
  :mod:`array` and :mod:`struct`, not token by token.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain as concatenate
from itertools import islice, repeat
from typing import Final

from xxhash import xxh3_64_intdigest

from inferencecache.errors import InvalidRequestError

SEED: Final = 1337
KEY_BYTES: Final = 8
TOKEN_BYTES: Final = 4
TOKEN_ID_MAX: Final = 2**32 - 1

_HASH_MAX: Final = 2**64 - 1
_GROUP_BLOCKS: Final = 64
_SLICE_TOKENS_PER_BLOCK: Final = 16
_SCAN_ALL_SHARE: Final = 8


def chain(
    token_ids: Sequence[int], block_size_tokens: int, parent: int | None = None
) -> list[bytes]:
    """Return the wire keys of all full blocks of *token_ids*, in order.

    Args:
        token_ids: Token ids, each 0 to 2**32 - 1. Ids in a partial last block are not looked at.
        block_size_tokens: Tokens per block; 0 or less gives no keys.
        parent: Prefix hash of the block before the first, 0 to 2**64 - 1; None at a prompt's start.

    Returns:
        One key of 8 bytes, big-endian, per full block.

    Raises:
        InvalidRequestError: A token id or the parent is out of range or not an integer.

    Complexity:
        Linear in tokens; at 16 tokens per block the work per block dominates.

    Source: docs/adr/0004-fingerprint.md.
    """
    return _wire_keys(prefix_hashes(token_ids, block_size_tokens, parent))


def chain_slices(
    token_ids: Sequence[int], block_size_tokens: int, slice_blocks: int, parent: int | None = None
) -> Iterator[list[bytes]]:
    """Yield what :func:`chain` returns, in pieces that each take a bounded time.

    For requests so large that one call would hold an event loop: the caller gives the loop back
    between two pieces. Pieces also hold at most 16 tokens per allowed block, so that large blocks
    do not make them slower.

    Args:
        token_ids: Token ids; must not change until the last piece is out.
        block_size_tokens: Tokens per block; 0 or less gives no pieces.
        slice_blocks: Most keys in a piece, >= 1.
        parent: As for :func:`chain`.

    Yields:
        Lists of 1 to *slice_blocks* keys.

    Raises:
        InvalidRequestError: As for :func:`chain`, when the piece with the bad token id is due; or
            *slice_blocks* is below 1.
    """
    if slice_blocks < 1:
        raise InvalidRequestError(field="slice_blocks", value=slice_blocks, allowed="1 or more")
    blocks_total = _full_blocks(token_ids, block_size_tokens)
    if blocks_total == 0:
        return
    tokens_max = slice_blocks * _SLICE_TOKENS_PER_BLOCK
    step = min(slice_blocks, max(1, tokens_max // block_size_tokens)) * block_size_tokens
    for start in range(0, blocks_total * block_size_tokens, step):
        hashes = prefix_hashes(token_ids[start : start + step], block_size_tokens, parent)
        parent = hashes[-1]
        yield _wire_keys(hashes)


def prefix_hashes(
    token_ids: Sequence[int], block_size_tokens: int, parent: int | None = None
) -> list[int]:
    """Return the prefix hashes of all full blocks as integers; see :func:`chain`."""
    tokens_used = _full_blocks(token_ids, block_size_tokens) * block_size_tokens
    packed = _pack(token_ids if tokens_used == len(token_ids) else token_ids[:tokens_used])
    return packed_prefix_hashes(packed, block_size_tokens, parent)


def packed_prefix_hashes(
    packed: bytes, block_size_tokens: int, parent: int | None = None
) -> list[int]:
    """Return what :func:`prefix_hashes` does, of tokens that are packed already.

    Args:
        packed: 4 bytes little-endian per token; an incomplete last block is not looked at.
        block_size_tokens: As for :func:`chain`.
        parent: As for :func:`chain`.

    Raises:
        InvalidRequestError: The parent is out of range.
    """
    if parent is not None and not 0 <= parent <= _HASH_MAX:
        raise InvalidRequestError(field="parent", value=parent, allowed="0 to 2**64 - 1")
    digest, pair, seed = xxh3_64_intdigest, struct.Struct("<QQ").pack, SEED
    blocks = _blocks(packed, block_size_tokens)
    hashes: list[int] = []
    if parent is None:
        hashes.extend(digest(block, seed) for block in islice(blocks, 1))
        parent = hashes[0] if hashes else 0
    previous = parent
    hashes += [previous := digest(pair(previous, digest(block, seed)), seed) for block in blocks]
    return hashes


def packed_tokens(pieces: Iterable[list[int]]) -> bytes:
    """Return token ids as :func:`packed_prefix_hashes` takes them, those of all pieces in a row.

    Args:
        pieces: Of a tokenizer: that each is a token id is not looked at.

    Raises:
        OverflowError, TypeError: One is none.
    """
    packed = array("I")
    for piece in pieces:
        packed.fromlist(piece)
    return _little_endian(packed)


def wire_bytes(hashes: list[int]) -> bytes:
    """Return prefix hashes as they go over the wire, 8 bytes each, in a row."""
    packed = array("Q", hashes)
    if sys.byteorder == "little":  # pragma: no branch - the hosts of our tests are little-endian
        packed.byteswap()
    return packed.tobytes()


def content_hashes(token_ids: Sequence[int], block_size_tokens: int) -> list[int]:
    """Return the unchained hash of each full block; see :func:`chain` for the arguments."""
    tokens_used = _full_blocks(token_ids, block_size_tokens) * block_size_tokens
    blocks = _blocks(_pack(token_ids[:tokens_used]), block_size_tokens)
    return list(map(xxh3_64_intdigest, blocks, repeat(SEED)))


def _blocks(packed: bytes, block_size_tokens: int) -> Iterator[bytes]:
    """Yield the bytes of each full block."""
    block_bytes = block_size_tokens * TOKEN_BYTES
    if not 0 < block_bytes <= len(packed):
        return iter(())
    used = len(packed) - len(packed) % block_bytes
    return _split(packed[:used], block_bytes)


def _full_blocks(token_ids: Sequence[int], block_size_tokens: int) -> int:
    return len(token_ids) // block_size_tokens if block_size_tokens > 0 else 0


def _pack(token_ids: Sequence[int]) -> bytes:
    """Return the ids as little-endian uint32, refusing what is not one."""
    packed = array("I")
    try:
        packed.fromlist(token_ids if isinstance(token_ids, list) else list(token_ids))
    except (OverflowError, TypeError):
        raise _bad_token_id(token_ids) from None
    data = _little_endian(packed)
    if _holds_boolean(token_ids, data):
        raise _bad_token_id(token_ids)
    return data


def _little_endian(packed: "array[int]") -> bytes:
    if sys.byteorder == "big":  # pragma: no cover - the hosts of our tests are little-endian
        packed.byteswap()
    return packed.tobytes()


def _holds_boolean(token_ids: Sequence[int], data: bytes) -> bool:
    """Tell whether an id is a bool, which packs as 0 or 1.

    Looking at the type of every id would double the time of a chain, so only ids with a zero
    second byte are looked at: one in 256 of a usual prompt.
    """
    before_zeros = data[1::TOKEN_BYTES].split(b"\0")
    if len(before_zeros) * _SCAN_ALL_SHARE > len(token_ids):
        return bool in map(type, token_ids)
    position = -1
    for between in before_zeros[:-1]:
        position += len(between) + 1
        if type(token_ids[position]) is bool:
            return True
    return False


def _bad_token_id(token_ids: Sequence[object]) -> InvalidRequestError:
    position, token_id = next(
        (position, token_id)
        for position, token_id in enumerate(token_ids)
        if not _is_token_id(token_id)
    )
    return InvalidRequestError(
        field=f"token_ids[{position}]", value=token_id, allowed="an integer, 0 to 2**32 - 1"
    )


def _is_token_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= TOKEN_ID_MAX


def _wire_keys(hashes: list[int]) -> list[bytes]:
    return list(_split(wire_bytes(hashes), KEY_BYTES))


def _split(data: bytes, width: int) -> Iterator[bytes]:
    """Cut *data*, a multiple of *width* long, into pieces of *width* bytes."""
    groups = _group_of(width)
    grouped = len(data) - len(data) % groups.size
    rest = (data[start : start + width] for start in range(grouped, len(data), width))
    return concatenate(concatenate.from_iterable(groups.iter_unpack(data[:grouped])), rest)


@lru_cache(maxsize=16)
def _group_of(width: int) -> struct.Struct:
    # One unpacking of 64 pieces costs a third of 64 slices, and its size does not depend on the
    # request, so nothing of a huge request stays behind in a cache.
    return struct.Struct(f"{width}s" * _GROUP_BLOCKS)
