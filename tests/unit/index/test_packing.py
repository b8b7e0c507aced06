"""Packed blocks compare exactly, whatever the lengths of the hashes."""

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.index.packing import (
    WIDTH_MAX,
    common_blocks,
    find,
    is_uniform,
    pack,
    pack_single,
    pack_uniform,
    unpack,
)

HASHES = st.lists(st.binary(max_size=4), min_size=1, max_size=12)


@given(left=HASHES, right=HASHES)
def test_packed_equals_only_if_hashes_of_the_width_are_equal(
    left: list[bytes], right: list[bytes]
) -> None:
    """Two packed sequences are equal only if all blocks of the width agree, one by one."""
    uniform = all(len(block) == 2 for block in left)

    assert not uniform or (pack(left, 2) == pack(right, 2)) == (left == right)


def test_hashes_of_other_lengths_with_equal_joins_differ() -> None:
    """[ab, cd] is not [abc, d], though both join to abcd."""
    assert pack([b"ab", b"cd"], 2) != pack([b"abc", b"d"], 2)
    assert pack([b"ab", b"cd"], 2) == b"\x02ab\0\x02cd\0"


@given(hashes=HASHES)
def test_uniform_tells_whether_every_hash_has_the_width(hashes: list[bytes]) -> None:
    """Uniform means every single hash has the width."""
    assert is_uniform(pack(hashes, 2), 2) == all(len(block) == 2 for block in hashes)


def test_packing_in_pieces_equals_packing_at_once() -> None:
    """Long sequences are packed in pieces without a seam."""
    hashes = [number.to_bytes(8, "big") for number in range(1_500)]

    packed = pack(hashes, 8)

    assert unpack(packed, 10) == hashes
    assert pack(hashes, 8, 500, 1_100) == packed[5_000:11_000]


def test_single_block_packs_like_a_sequence_of_one() -> None:
    """A lone block may later join others, so it packs alike; wider ones keep their content."""
    assert pack_single(b"12345678") == pack([b"12345678"], 8)
    assert pack_single(b"x" * WIDTH_MAX)[1:-1] == b"x" * WIDTH_MAX
    assert pack_single(b"y" * 1_000)[1:-1] == b"y" * 1_000


@given(hashes=st.lists(st.binary(min_size=2, max_size=2), min_size=1, max_size=30, unique=True))
def test_find_returns_the_position(hashes: list[bytes]) -> None:
    """Every block is found where it stands, also when its bytes occur across a seam."""
    packed = pack(hashes, 2)

    assert [find(packed, 4, block) for block in hashes] == list(range(len(hashes)))


@given(
    shared=st.integers(min_value=0, max_value=40),
    left=st.integers(min_value=0, max_value=40),
    right=st.integers(min_value=0, max_value=40),
)
def test_common_blocks_counts_the_equal_head(shared: int, left: int, right: int) -> None:
    """The equal head is found exactly, wherever the first difference is."""
    head = [b"h%03d" % number for number in range(shared)]
    one = pack(head + [b"l%03d" % number for number in range(left)], 4)
    other = pack([b"skip"] + head + [b"r%03d" % number for number in range(right)], 4)

    assert common_blocks(one, 0, other, 6, 6) == shared


@given(hashes=HASHES)
def test_uniform_packing_takes_hashes_of_one_length_only(hashes: list[bytes]) -> None:
    """What is packed that way is packed as always; other hashes, or empty ones, are not."""
    width = len(hashes[0])
    alike = width > 0 and all(len(block) == width for block in hashes)

    assert pack_uniform(hashes) == (pack(hashes, width) if alike else b"")


def test_hashes_too_wide_to_pack_are_not_uniform() -> None:
    """A length that does not fit its byte is never taken for a width."""
    assert pack_uniform([b"x" * (WIDTH_MAX + 1)]) == b""
