"""Engine pages smaller than an index block are put together."""

import pytest
from engine_events import Producer, keys, removed, stored, tokens

from inferencecache.types import CacheTier

T1, T2 = CacheTier.T1, CacheTier.T2


def pages(producer: Producer, hashes: list[int], token_ids: list[int], parent: int | None) -> None:
    """Store one-token pages, one event each."""
    for engine_hash, token in zip(hashes, token_ids, strict=True):
        producer.feed(stored([engine_hash], [token], parent=parent, size=1))
        parent = engine_hash


def test_sixteen_pages_make_one_key() -> None:
    """No key before the block is full, one after."""
    producer = Producer()
    own = tokens(0, 1)
    pages(producer, list(range(15)), own[:15], None)
    assert producer.held == {}

    pages(producer, [15], own[15:], 14)
    assert producer.held == dict.fromkeys(keys(own), T1)
    assert list(producer.index.held.values()) == [(T1, 16)]


def test_branch_inside_a_block_shares_its_first_pages() -> None:
    """Two endings of one beginning are two keys, and each goes alone."""
    producer = Producer()
    own = tokens(0, 1)
    other = own[:8] + tokens(500, 1)[:8]
    pages(producer, list(range(16)), own, None)
    pages(producer, list(range(100, 108)), other[8:], 7)
    assert producer.held == dict.fromkeys([*keys(own), *keys(other)], T1)

    producer.feed(removed([15]))
    assert producer.held == dict.fromkeys(keys(other), T1)


def test_removing_a_page_removes_every_key_it_is_part_of() -> None:
    """A shared page takes both endings with it; complete blocks before it stay."""
    producer = Producer()
    own = tokens(0, 2)
    other = own[:24] + tokens(500, 1)[:8]
    pages(producer, list(range(32)), own, None)
    pages(producer, list(range(100, 108)), other[24:], 23)
    producer.feed(removed([20]))

    assert producer.held == dict.fromkeys(keys(own)[:1], T1)


def test_child_after_a_full_block_starts_a_new_one() -> None:
    """Counts go on from the whole prompt."""
    producer = Producer()
    own = tokens(0, 3)
    producer.feed(stored(list(range(48)), own, size=1))

    assert [count for _, count in producer.index.held.values()] == [16, 32, 48]


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_pages_of_any_divisor_make_the_same_keys(size: int) -> None:
    """Page size does not show in the keys."""
    producer = Producer()
    own = tokens(0, 4)
    producer.feed(stored(list(range(64 // size)), own, size=size))

    assert producer.held == dict.fromkeys(keys(own), T1)


def test_pages_moving_to_the_host_move_their_key() -> None:
    """The page that completes a block decides its tier."""
    producer = Producer()
    own = tokens(0, 1)
    producer.feed(stored([1, 2], own, size=8))
    producer.feed(stored([1, 2], own, size=8, medium="CPU_PINNED"), removed([2]), removed([1]))
    assert producer.held == dict.fromkeys(keys(own), T2)

    producer.feed(stored([1, 2], own, size=8))
    assert producer.held == dict.fromkeys(keys(own), T1)

    producer.feed(removed([2], "CPU_PINNED"), removed([1], "CPU_PINNED"), removed([1, 2]))
    assert producer.held == {}
    assert producer.mapper.blocks_total == 0


def test_page_store_that_repeats_its_first_pages_counts_copies() -> None:
    """An event may start again at known pages."""
    producer = Producer()
    own = tokens(0, 1)
    producer.feed(stored([1, 2], own[:8], size=4), stored([1, 2, 3, 4], own, size=4))
    producer.feed(removed([1]))

    assert producer.held == dict.fromkeys(keys(own), T1)


def test_opaque_page_ends_assembly() -> None:
    """A salted page and what follows it never complete a block."""
    producer = Producer()
    own = tokens(0, 1)
    producer.feed(stored([1, 2], own[:8], size=4, opaque_from=1))
    producer.feed(stored([3, 4], own[8:], parent=2, size=4))

    assert producer.held == {}
