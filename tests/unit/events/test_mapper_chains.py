"""Positions in prompts: roots, children, orphans and counts."""

from engine_events import CLEARED, Producer, batch_of, keys, removed, stored, tokens

from inferencecache.events import Clear, Evict, StoreRun
from inferencecache.events.chunking import lone_key
from inferencecache.events.token_packing import pack_tokens
from inferencecache.fingerprint import prefix_hashes
from inferencecache.types import INT32_MAX, CacheTier

T1 = CacheTier.T1


def test_child_in_another_batch_continues_its_parent() -> None:
    """The child's key is the key of both blocks, and counts go on."""
    producer = Producer()
    producer.feed(stored([1], tokens(0, 1)))
    producer.feed(stored([2, 3], tokens(16, 2), parent=1))

    assert producer.held == dict.fromkeys(keys(tokens(0, 3)), T1)
    assert [count for _, count in producer.index.held.values()] == [16, 32, 48]


def test_single_blocks_and_runs_give_the_same_keys() -> None:
    """The short way for one block computes what the fingerprint defines."""
    for size in (1, 4, 16, 60, 61, 64, 256):
        own = tokens(7, 1, size)
        assert [lone_key(pack_tokens(own), None)] == prefix_hashes(own, size)
        assert [lone_key(pack_tokens(own), 2**64 - 1)] == prefix_hashes(own, size, 2**64 - 1)


def test_unknown_parent_is_held_and_placed_when_the_parent_comes() -> None:
    """A suffix has no key of its own until its parent is known."""
    producer = Producer()
    producer.feed(stored([2], tokens(16, 1), parent=1), stored([3], tokens(32, 1), parent=2))

    assert producer.held == {}
    assert producer.mapper.orphan_blocks == 2

    producer.feed(stored([1], tokens(0, 1)))

    assert producer.held == dict.fromkeys(keys(tokens(0, 3)), T1)
    assert producer.mapper.orphan_blocks == 0
    assert producer.mapper.counters.orphans_resolved == 2


def test_unknown_parent_is_never_rooted() -> None:
    """What waited too long is dropped and counted, and stays unindexed when its child comes."""
    producer = Producer(orphan_hold_ns=10)
    producer.feed(stored([2], tokens(16, 1), parent=1), now_ns=0)
    producer.mapper.expire(10)
    producer.feed(stored([3], tokens(32, 1), parent=2), now_ns=11)

    assert producer.held == {}
    assert producer.mapper.counters.orphans_dropped == 1
    assert producer.mapper.orphan_blocks == 1


def test_orphans_are_bounded_and_the_oldest_go_first() -> None:
    """More than the limit never waits; a store larger than the limit not at all."""
    producer = Producer(orphan_blocks_max=2)
    for parent in (100, 200, 300):
        producer.feed(stored([parent + 1], tokens(parent, 1), parent=parent))
    producer.feed(stored([7, 8, 9], tokens(0, 3), parent=6))

    assert producer.mapper.orphan_blocks == 2
    assert producer.mapper.counters.orphans_dropped == 4

    producer.feed(stored([100], tokens(0, 1)), stored([200], tokens(0, 1)))

    assert producer.held == dict.fromkeys(
        [*keys(tokens(0, 1)), *keys(tokens(0, 1) + tokens(200, 1))], T1
    )


def test_removal_of_a_waiting_block_is_applied_when_it_is_placed() -> None:
    """A block that left while it waited is not claimed later."""
    producer = Producer()
    producer.feed(stored([2, 3], tokens(16, 2), parent=1), removed([3]))
    producer.feed(stored([1], tokens(0, 1)))

    assert producer.held == dict.fromkeys(keys(tokens(0, 2)), T1)
    assert producer.mapper.counters.unknown_removals == 0


def test_clear_forgets_waiting_blocks() -> None:
    """After a clear a late parent resolves nothing."""
    producer = Producer()
    producer.feed(stored([2], tokens(16, 1), parent=1), CLEARED, stored([1], tokens(0, 1)))

    assert producer.held == dict.fromkeys(keys(tokens(0, 1)), T1)


def test_store_that_names_itself_as_parent_is_dropped() -> None:
    """A cycle has no position."""
    producer = Producer()
    producer.feed(stored([1], tokens(0, 1), parent=1), stored([2, 3], tokens(0, 2), parent=3))

    assert producer.held == {}
    assert producer.drops() == {"self_parent": 2}


def test_clear_between_stores_leaves_only_the_later_ones() -> None:
    """What was gathered before a clear is never sent."""
    producer = Producer()
    operations = producer.mapper.apply(
        batch_of([stored([1], tokens(0, 1)), CLEARED, stored([2], tokens(100, 1))]),
        0,
    )

    assert [type(operation) for operation in operations] == [Clear, StoreRun]
    assert producer.mapper.held_keys() == dict.fromkeys(keys(tokens(100, 1)), T1)


def test_removal_evicts_and_later_child_of_it_waits() -> None:
    """A child whose parent has gone is not indexed under the wrong place."""
    producer = Producer()
    producer.feed(stored([1, 2], tokens(0, 2)))
    producer.feed(removed([1]))
    producer.feed(stored([9], tokens(16, 1), parent=1))

    assert producer.held == dict.fromkeys(keys(tokens(0, 2))[1:], T1)
    assert producer.mapper.orphan_blocks == 1


def test_unknown_blocks_in_a_removal_do_not_stop_it() -> None:
    """The known one goes, the others are counted."""
    producer = Producer()
    producer.feed(stored([2], tokens(0, 1)))
    producer.feed(removed([1, 2, 3]))

    assert producer.held == {}
    assert producer.mapper.counters.unknown_removals == 2


def test_hash_that_comes_to_mean_other_content_is_replaced() -> None:
    """The old key goes with the label that stood for it."""
    producer = Producer()
    producer.feed(stored([1], tokens(0, 1)))
    producer.feed(stored([1], tokens(500, 1)))

    assert producer.held == dict.fromkeys(keys(tokens(500, 1)), T1)
    assert producer.mapper.counters.rebound_blocks == 1


def test_depth_beyond_the_wire_is_refused() -> None:
    """Token counts stay within 32 bits."""
    producer = Producer()
    producer.feed(stored([1], tokens(0, 1)))
    block = producer.mapper._ranks[0].groups[0].blocks.get(1)
    assert block is not None
    block.tokens = INT32_MAX - 3
    producer.mapper.apply(batch_of([stored([2], tokens(0, 1), parent=1)]), 0)

    assert producer.drops() == {"depth": 1}


def test_map_limit_withdraws_the_oldest_blocks() -> None:
    """A full map forgets in order of age and says so to the index."""
    producer = Producer(blocks_max=8)
    for position in range(20):
        producer.feed(stored([position], tokens(position * 1000, 1)))

    assert producer.mapper.blocks_total == 8
    assert producer.mapper.counters.overflowed_blocks == 12
    assert len(producer.held) == 8
    assert keys(tokens(19_000, 1))[0] in producer.held


def test_run_of_ten_thousand_blocks_is_one_operation() -> None:
    """A long prompt is one contiguous run."""
    producer = Producer()
    producer.feed(stored(list(range(10_000)), tokens(0, 10_000)))
    operations = producer.mapper.apply(batch_of([removed(list(range(10_000)))]), 0)

    assert [type(operation) for operation in operations] == [Evict]
    assert producer.mapper.held_keys() == {}
