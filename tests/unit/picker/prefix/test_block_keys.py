"""Prompts as stretches: which blocks are kept, what they stand for, and of which caches."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefix_rig import exact, tokens

from inferencecache.picker.prefix.block_keys import (
    COARSE,
    FINE_STRETCHES,
    BlockKeys,
    CacheDomain,
    block_keys,
)

DOMAIN = CacheDomain("t", "m", "vllm", "")


@pytest.mark.parametrize(
    ("block_tokens", "stretch_tokens"),
    [(1, 64), (16, 64), (24, 72), (48, 96), (64, 64), (128, 128)],
)
def test_small_blocks_are_taken_together(block_tokens: int, stretch_tokens: int) -> None:
    """As few as make 64 tokens; each stands for the block it ends with."""
    blocks = exact(tokens(1_000), block_tokens=block_tokens)
    found = block_keys(blocks.hashes, block_tokens, 64, DOMAIN)
    assert found.tokens == stretch_tokens
    assert len(found.keys) // 8 == 1_000 // block_tokens * block_tokens // stretch_tokens
    alone = block_keys(
        blocks.hashes[: stretch_tokens // block_tokens * 8], block_tokens, 64, DOMAIN
    )
    assert alone.keys == found.keys[:8]


@given(st.integers(0, 6 * FINE_STRETCHES), st.integers(0, 6 * FINE_STRETCHES))
def test_prompts_share_what_they_have_in_common(first: int, second: int) -> None:
    """Whatever their lengths, the shorter one's stretches lead the longer one's."""
    hashes = b"".join(number.to_bytes(8) for number in range(max(first, second)))
    short, long = (
        block_keys(hashes[: length * 8], 64, 64, DOMAIN) for length in sorted((first, second))
    )
    assert long.keys[: len(short.keys)] == short.keys
    counts = [short.tokens_of(count) for count in range(len(short.keys) // 8 + 1)]
    assert counts[0] == 0
    assert all(before < after for before, after in pairwise(counts))
    left_out = min(first, second) * 64 - counts[-1]
    assert 0 <= left_out < (64 * COARSE if counts[-1] >= FINE_STRETCHES * 64 else 64)


def test_a_million_tokens_are_so_many_keys() -> None:
    """The worked example."""
    hashes = bytes(8 * (1_000_000 // 16))
    assert len(block_keys(hashes, 16, 64, DOMAIN).keys) // 8 == 1_024 + 14_601 // 8 == 2_849


@pytest.mark.parametrize("field", CacheDomain._fields)
def test_caches_of_others_have_other_keys(field: str) -> None:
    """By tenant, model, scheme and adapter; a text cannot be moved from one to the next."""
    hashes = exact(tokens(640)).hashes
    mine = keys_of(block_keys(hashes, 16, 64, DOMAIN))
    other = DOMAIN._replace(**{field: "x"})
    moved = CacheDomain("tm", "", "vllm", "")
    for domain in (other, moved, DOMAIN._replace(tenant_id="\ud800")):
        assert not mine & keys_of(block_keys(hashes, 16, 64, domain))


def keys_of(found: BlockKeys) -> set[bytes]:
    """Return each of the keys."""
    return {found.keys[at : at + 8] for at in range(0, len(found.keys), 8)}
