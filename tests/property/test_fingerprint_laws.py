"""Laws of the fingerprint for any token ids and block size."""

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.fingerprint import chain, chain_slices, content_hashes, prefix_hashes

TOKEN_IDS = st.lists(st.integers(0, 2**32 - 1), max_size=200)
BLOCK_SIZES = st.one_of(st.integers(1, 20), st.sampled_from([60, 61, 64]))
PARENTS = st.one_of(st.none(), st.integers(0, 2**64 - 1))


@given(TOKEN_IDS, BLOCK_SIZES, PARENTS, st.integers(0, 200))
def test_prefix_law(tokens: list[int], size: int, parent: int | None, cut: int) -> None:
    """The chain of a prefix is a prefix of the chain."""
    keys = chain(tokens[:cut], size, parent)

    assert chain(tokens, size, parent)[: len(keys)] == keys
    assert len(keys) == len(tokens[:cut]) // size


@given(TOKEN_IDS, BLOCK_SIZES, PARENTS, st.integers(1, 50))
def test_parent_continues_the_chain(
    tokens: list[int], size: int, parent: int | None, blocks: int
) -> None:
    """A suffix chained from the last hash before it completes the whole."""
    cut = blocks * size
    head = prefix_hashes(tokens[:cut], size, parent)
    last = head[-1] if head else parent

    whole = prefix_hashes(tokens, size, parent)

    assert head + prefix_hashes(tokens[cut:], size, last) == whole


@given(TOKEN_IDS, BLOCK_SIZES, PARENTS, st.integers(1, 9))
def test_slices_equal_the_whole(
    tokens: list[int], size: int, parent: int | None, slice_blocks: int
) -> None:
    """Slices put together are the chain, and each is within its bound."""
    pieces = list(chain_slices(tokens, size, slice_blocks, parent))

    assert [key for keys in pieces for key in keys] == chain(tokens, size, parent)
    assert all(1 <= len(keys) <= slice_blocks for keys in pieces)


@given(TOKEN_IDS, BLOCK_SIZES)
def test_content_is_position_blind_and_keys_are_not(tokens: list[int], size: int) -> None:
    """A block repeated has one content hash and two keys."""
    block = (tokens * size)[:size]

    contents, keys = content_hashes(block * 2, size), chain(block * 2, size)

    assert len(set(contents)) == min(1, len(block))
    assert len(set(keys)) == len(keys)


@given(TOKEN_IDS, BLOCK_SIZES, PARENTS)
def test_forms_agree(tokens: list[int], size: int, parent: int | None) -> None:
    """Keys are the prefix hashes in big-endian bytes."""
    hashes = prefix_hashes(tokens, size, parent)

    assert chain(tokens, size, parent) == [value.to_bytes(8, "big") for value in hashes]
