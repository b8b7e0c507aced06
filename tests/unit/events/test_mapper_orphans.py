"""Stores before their parents: chains, cycles, repeated hashes, and what they cost."""

import time

import pytest
from engine_events import Producer, keys, removed, stored, tokens

from inferencecache.events import BlockStored
from inferencecache.types import CacheTier

T1 = CacheTier.T1
ONE = tokens(0, 1)


def chain_of(blocks: int) -> list[BlockStored]:
    """Return a prompt as one store per block, deepest first; the first block's parent is 0."""
    return [
        stored([number], tokens(16 * number, 1), parent=number - 1)
        for number in range(blocks, 0, -1)
    ]


@pytest.mark.parametrize("length", [2, 3, 7])
@pytest.mark.parametrize("is_one_batch", [True, False])
def test_a_cycle_waits_and_is_given_up(length: int, *, is_one_batch: bool) -> None:
    """Stores that are each other's parents have no position; each waits once."""
    producer = Producer(orphan_hold_ns=10)
    cycle = [stored([60 + step], ONE, parent=60 + (step + 1) % length) for step in range(length)]
    for batch in [cycle] if is_one_batch else [[event] for event in cycle]:
        producer.feed(*batch)

    assert producer.held == {}
    assert producer.mapper.orphan_blocks == length
    assert producer.mapper.counters.orphaned_blocks == length
    assert producer.mapper.counters.orphans_resolved == 0

    producer.feed(now_ns=10)
    assert producer.mapper.orphan_blocks == 0
    assert producer.mapper.counters.orphans_dropped == length


def test_a_cycle_that_gets_a_root_is_placed_once() -> None:
    """The root's store gives a position to the next; the one that came back replaces the root."""
    producer = Producer()
    producer.feed(stored([1], ONE, parent=2), stored([2], tokens(16, 1), parent=1))
    producer.feed(stored([1], ONE))

    assert producer.held == dict.fromkeys(keys(ONE + tokens(16, 1) + ONE)[1:], T1)
    assert producer.mapper.orphan_blocks == 0
    assert producer.mapper.counters.orphans_resolved == 2
    assert producer.mapper.counters.rebound_blocks == 1


def test_a_chain_that_comes_backwards_counts_every_block_once() -> None:
    """Each waits from its arrival on, whatever comes after it, and is placed with the root."""
    producer = Producer()
    producer.feed(*chain_of(50))
    assert producer.mapper.counters.orphaned_blocks == 50
    assert producer.mapper.counters.orphans_resolved == 0

    producer.feed(stored([0], tokens(0, 1)))
    assert producer.held == dict.fromkeys(keys(tokens(0, 51)), T1)
    assert producer.mapper.counters.orphaned_blocks == 50
    assert producer.mapper.counters.orphans_resolved == 50


def test_a_younger_ancestor_does_not_prolong_the_wait() -> None:
    """The deadline counts from arrival."""
    producer = Producer(orphan_hold_ns=10)
    for age, event in enumerate(chain_of(5)):
        producer.feed(event, now_ns=age)
    producer.mapper.expire(12)

    assert producer.mapper.orphan_blocks == 2
    assert producer.mapper.counters.orphans_dropped == 3


@pytest.mark.timeout(60)
def test_a_long_backward_chain_costs_little_per_block() -> None:
    """Sixteen times the blocks take far less than 256 times the time, as pairs would."""
    spent: dict[int, float] = {}
    for blocks in (1_000, 16_000):
        producer = Producer()
        started = time.process_time()
        producer.feed(*chain_of(blocks), stored([0], tokens(0, 1)))
        spent[blocks] = time.process_time() - started
        assert len(producer.held) == blocks + 1

    assert spent[16_000] < 80 * spent[1_000]


def test_a_refused_store_adopts_nobody() -> None:
    """What is dropped has no position to give; the child keeps waiting, counted once."""
    producer = Producer()
    producer.feed(stored([2], tokens(16, 1), parent=1), stored([1], tokens(0, 1), lora_id=9))

    assert producer.held == {}
    assert producer.mapper.orphan_blocks == 1
    assert producer.mapper.counters.orphaned_blocks == 1


def test_an_orphan_refused_at_last_is_given_up() -> None:
    """A child in another partition than its parent, when that comes, is dropped for that."""
    producer = Producer(lora_adapter_names="1=sql")
    producer.feed(stored([2], tokens(16, 1), parent=1, lora_id=1), stored([1], ONE))

    assert producer.held == dict.fromkeys(keys(ONE), T1)
    assert producer.drops() == {"parent_adapter": 1}
    assert producer.mapper.counters.orphans_resolved == 0
    assert producer.mapper.counters.orphans_dropped == 1


def test_a_parent_removed_while_it_waited_still_places_its_child() -> None:
    """As when all of it comes in order, the removal takes the parent alone."""
    producer = Producer()
    producer.feed(
        stored([3], tokens(32, 1), parent=2), stored([2], tokens(16, 1), parent=1), removed([2])
    )
    producer.feed(stored([1], ONE))

    expected = keys(tokens(0, 3))
    assert producer.held == dict.fromkeys([expected[0], expected[2]], T1)
    assert producer.mapper.orphan_blocks == 0


def test_a_removal_from_another_medium_is_not_a_waiting_blocks() -> None:
    """The host's copy was never known; the GPU's goes with the GPU's removal."""
    producer = Producer()
    producer.feed(
        stored([2], tokens(16, 1), parent=1), removed([2], "CPU"), removed([2]), removed([2])
    )
    producer.feed(stored([1], ONE))

    assert producer.held == dict.fromkeys(keys(ONE), T1)
    assert producer.mapper.counters.unknown_removals == 2


@pytest.mark.parametrize("parent", [None, 7])
@pytest.mark.parametrize("hashes", [[1, 1], [1, 1, 1, 1], [1, 2, 1]])
def test_a_store_that_repeats_a_hash_is_refused(hashes: list[int], parent: int | None) -> None:
    """One label cannot stand for two places of a prompt; what else the batch says still counts."""
    producer = Producer()
    producer.feed(stored([5], tokens(900, 1)))
    producer.feed(
        removed([5]),
        stored(hashes, tokens(0, len(hashes)), parent=parent),
        stored([7], tokens(500, 1)),
    )

    assert producer.held == dict.fromkeys(keys(tokens(500, 1)), T1)
    assert producer.drops() == {"repeated_hash": 1}
    assert producer.mapper.orphan_blocks == 0


def test_a_block_replaced_within_a_store_is_not_claimed() -> None:
    """A page that gives way to another takes those with it that it shared an index block with."""
    producer = Producer()
    producer.feed(stored([1, 2], tokens(0, 1), size=8))
    producer.feed(stored([2, 1], tokens(700, 1), size=8))
    assert producer.held == dict.fromkeys(keys(tokens(700, 1)), T1)

    producer.feed(removed([2]))
    producer.feed(removed([1]))
    assert producer.held == {}


def test_many_removals_of_waiting_blocks_cost_little_each() -> None:
    """One store, and many stores of one block: each removal finds its copy at once."""
    spent: dict[int, float] = {}
    for blocks in (1_000, 16_000):
        producer = Producer()
        labels = list(range(1, blocks + 1))
        producer.feed(stored(labels, tokens(0, blocks), parent=0))
        producer.feed(*[stored([0], ONE, parent=-1)] * blocks)
        started = time.process_time()
        producer.feed(removed(labels), removed([0] * blocks))
        spent[blocks] = time.process_time() - started
        assert producer.mapper.counters.unknown_removals == 0

    assert spent[16_000] < 80 * spent[1_000]
