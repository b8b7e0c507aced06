"""Tokens as bytes, and counts as shared integers: every length by every way."""

import pytest

from inferencecache.events.blocks import SharedCounts
from inferencecache.events.token_packing import pack_tokens, unpack_tokens
from inferencecache.fingerprint import packed_prefix_hashes, prefix_hashes


@pytest.mark.parametrize("total", [0, 1, 63, 64, 65, 1_000])
def test_tokens_come_back(total: int) -> None:
    """Short lists and long ones go different ways to the same bytes."""
    tokens = [(position * 2_654_435_761) % 2**32 for position in range(total)]
    packed = pack_tokens(tokens)

    assert packed == b"".join(token.to_bytes(4, "little") for token in tokens)
    assert unpack_tokens(packed) == tokens


@pytest.mark.parametrize("total", [1, 64, 65, 300])
@pytest.mark.parametrize("bad", [-1, 2**32, 2**64])
def test_what_is_no_token_is_refused(total: int, bad: int) -> None:
    """The range is told by packing, whatever the length."""
    with pytest.raises(OverflowError):
        pack_tokens([*range(total - 1), bad])


@pytest.mark.parametrize("size", [1, 3, 16, 61])
def test_packed_tokens_have_the_keys_of_the_list(size: int) -> None:
    """An incomplete last block, even half a token, is left out."""
    tokens = list(range(7, 7 + 4 * size))
    packed = pack_tokens(tokens)

    for parent in (None, 5):
        assert packed_prefix_hashes(packed, size, parent) == prefix_hashes(tokens, size, parent)
        assert packed_prefix_hashes(packed[:-1], size, parent) == prefix_hashes(
            tokens[:-1], size, parent
        )
    assert packed_prefix_hashes(packed[:3], size) == []
    assert packed_prefix_hashes(packed, 0) == []


def test_counts_are_shared() -> None:
    """The same depth is the same object."""
    counts = SharedCounts()

    assert counts.share(123_456) is counts.share(123_400 + 56)
    assert counts.held == 1
