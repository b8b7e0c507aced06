"""The fingerprint's edges: what is refused, what is empty, what slices promise."""

import doctest
from array import array
from types import ModuleType

import pytest

from inferencecache import fingerprint
from inferencecache.errors import InvalidRequestError
from inferencecache.fingerprint import (
    chain,
    chain_slices,
    content_hashes,
    packed_prefix_hashes,
    packed_tokens,
    prefix_hashes,
    wire_bytes,
)

TOKENS = list(range(1, 65))


@pytest.mark.parametrize("module", [fingerprint])
def test_worked_example_holds(module: ModuleType) -> None:
    """The example in the module's docstring is true."""
    results = doctest.testmod(module)

    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize(
    ("bad", "shown"),
    [
        (-1, "-1"),
        (2**32, "4294967296"),
        (2**200, "16069380"),
        (True, "True"),
        (False, "False"),
        (1.0, "1.0"),
        ("7", "'7'"),
        (None, "None"),
    ],
)
@pytest.mark.parametrize("position", [0, 17, 31])
@pytest.mark.parametrize("filler", [0, 5, 70_000])
def test_bad_token_id_is_refused_by_position(
    bad: object, shown: str, position: int, filler: int
) -> None:
    """Whatever is not a uint32 is refused and named, among small and large neighbours alike."""
    tokens: list[object] = [filler] * 32
    tokens[position] = bad

    with pytest.raises(InvalidRequestError) as caught:
        chain(tokens, 16)  # type: ignore[arg-type]

    assert caught.value.field == f"token_ids[{position}]"
    assert shown in str(caught.value)


def test_boolean_among_large_ids_with_zero_second_byte() -> None:
    """Ids that look like a bool in packed form do not hide one behind them."""
    tokens = [65_536] + [70_000] * 30 + [True]

    with pytest.raises(InvalidRequestError, match=r"token_ids\[31\]"):
        chain(tokens, 16)


def test_ids_zero_and_one_are_accepted() -> None:
    """A plain 0 or 1 is a token id."""
    assert len(chain([0, 1] * 16, 16)) == 2
    assert len(chain([0, 1] + [70_000] * 30, 16)) == 2


def test_partial_block_is_not_looked_at() -> None:
    """An id in the dropped tail cannot fail a request that does not use it."""
    assert chain([*TOKENS, -1], 16) == chain(TOKENS, 16)


@pytest.mark.parametrize("size", [0, -1, -16, 65, 10**12])
def test_no_full_block_gives_nothing(size: int) -> None:
    """A block size of 0 or less, or above the prompt, has no keys, with a parent or without."""
    assert chain(TOKENS, size) == []
    assert chain(TOKENS, size, parent=7) == []
    assert content_hashes(TOKENS, size) == []
    assert prefix_hashes(TOKENS, size) == []
    assert list(chain_slices(TOKENS, size, 4)) == []


def test_empty_prompt_gives_nothing() -> None:
    """No tokens, no keys."""
    assert chain([], 16) == []
    assert list(chain_slices([], 16, 4)) == []


@pytest.mark.parametrize("parent", [-1, 2**64])
def test_parent_out_of_range_is_refused(parent: int) -> None:
    """A parent is a uint64."""
    with pytest.raises(InvalidRequestError, match="parent"):
        chain(TOKENS, 16, parent=parent)


def test_parent_zero_differs_from_no_parent() -> None:
    """Zero is a hash like any other."""
    assert chain(TOKENS, 16, parent=0) != chain(TOKENS, 16)


@pytest.mark.parametrize("make", [list, tuple, lambda ids: array("I", ids)])
def test_any_sequence_of_ids_will_do(make: object) -> None:
    """Lists, tuples and arrays give the same keys."""
    assert callable(make)

    assert chain(make(TOKENS), 16) == chain(TOKENS, 16)


def test_one_token_more_than_a_group() -> None:
    """Chains around the internal group of 64 blocks are complete."""
    for count in (63, 64, 65, 128, 129):
        keys = chain(list(range(count * 2)), 2)

        assert len(keys) == len(set(keys)) == count
        assert {len(key) for key in keys} == {8}


def test_packed_pieces_give_the_same_keys() -> None:
    """However the tokens are cut, and with a parent; all keys in a row."""
    ids = [number * 70_001 % 2**32 for number in range(1_003)]
    pieces = [ids[:1], [], ids[1:500], ids[500:]]
    for parent in (None, 7):
        hashes = packed_prefix_hashes(packed_tokens(pieces), 16, parent)
        assert wire_bytes(hashes) == b"".join(chain(ids, 16, parent))


def test_slices_hold_at_most_what_was_asked() -> None:
    """Every piece but the last is full, and none is empty."""
    pieces = [len(keys) for keys in chain_slices(list(range(1000)), 4, 100)]

    assert pieces == [100, 100, 50]


def test_slices_of_large_blocks_hold_fewer() -> None:
    """A piece holds at most 16 tokens per allowed block, but one block at least."""
    pieces = [len(keys) for keys in chain_slices(list(range(1024)), 64, 8)]

    assert pieces == [2] * 8
    assert [len(keys) for keys in chain_slices(list(range(1024)), 512, 8)] == [1, 1]


def test_slices_raise_where_the_bad_id_is() -> None:
    """Pieces before the bad id come out."""
    pieces = chain_slices([*TOKENS[:-1], -1], 16, 2)

    assert next(pieces) == chain(TOKENS, 16)[:2]
    with pytest.raises(InvalidRequestError):
        next(pieces)


@pytest.mark.parametrize("slice_blocks", [0, -5])
def test_slices_need_a_positive_size(slice_blocks: int) -> None:
    """A slice without blocks would never end."""
    with pytest.raises(InvalidRequestError, match="slice_blocks"):
        next(chain_slices(TOKENS, 16, slice_blocks))
