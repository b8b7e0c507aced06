"""A packed chain is a sequence like the list it was made of, whatever is asked of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.index import PackedHashes
from inferencecache.index.packing import pack

KEYS = [b"%04d" % number for number in range(60)]


def packed(hashes: list[bytes]) -> PackedHashes:
    """Return *hashes*, all of one width, packed."""
    width = len(hashes[0])
    return PackedHashes(pack(hashes, width), width)


@given(st.lists(st.binary(min_size=3, max_size=3), min_size=1, max_size=20), st.data())
def test_it_reads_like_a_list(hashes: list[bytes], data: st.DataObject) -> None:
    """Length, items from either end, slices and iteration are the list's."""
    chain = packed(hashes)
    at = data.draw(st.integers(-len(hashes), len(hashes) - 1))
    part = slice(*data.draw(st.tuples(st.integers(-9, 9), st.integers(-9, 9))))

    assert len(chain) == len(hashes)
    assert chain[at] == hashes[at]
    assert list(chain[part]) == hashes[part]
    assert list(chain) == hashes


@pytest.mark.parametrize("at", [3, -4])
def test_there_is_nothing_beyond_its_ends(at: int) -> None:
    """An index out of range raises, so that iteration by index ends."""
    with pytest.raises(IndexError):
        packed(KEYS[:3])[at]
