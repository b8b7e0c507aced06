"""Cumulative counts take constant space where they are regular and keep their values elsewhere."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.index.token_counts import compact, concatenated, cumulative
from inferencecache.types import INT32_MAX

COUNTS = st.lists(st.sampled_from([0, 1, 16, 16, 16, 16, INT32_MAX]), min_size=1, max_size=20)


@given(per_block=COUNTS)
def test_cumulative_sums_and_saturates(per_block: list[int]) -> None:
    """Each block counts everything up to it, never beyond 2^31-1."""
    expected = [min(total, INT32_MAX) for total in accumulate(per_block)]

    assert list(cumulative(per_block)) == expected


def test_equal_blocks_and_suffixes_are_ranges() -> None:
    """Equal blocks, and a suffix that carries its parent's count, take constant space."""
    assert cumulative([16] * 4) == range(16, 65, 16)
    assert cumulative([1_040, 16, 16]) == range(1_040, 1_073, 16)
    assert cumulative([16, 16, 5]) == (16, 32, 37)


@given(counts=st.lists(st.integers(min_value=0, max_value=99), min_size=1, max_size=12))
def test_compact_keeps_the_values(counts: list[int]) -> None:
    """Compacting never changes a value."""
    assert list(compact(counts)) == counts


def test_only_regular_neighbours_are_concatenated() -> None:
    """Ranges join if the result is one progression, else not at all."""
    assert concatenated(range(16, 33, 16), range(48, 65, 16)) == range(16, 65, 16)
    assert concatenated(range(16, 17), range(32, 33)) == range(16, 33, 16)
    assert concatenated(range(16, 33, 16), range(64, 65)) is None
    assert concatenated(range(32, 33), range(16, 17)) is None
    assert concatenated((16, 32, 37), range(53, 54)) is None
