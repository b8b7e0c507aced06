"""Stores before their parents: chains, cycles, repeated hashes, and what they cost."""

import itertools
from collections.abc import Callable
from functools import partial

import pytest
from engine_events import CLEARED, Producer, batch_of, keys, removed, stored, tokens
from processor_time import least_s
from work_counter import lines_run

from inferencecache.events import BlockStored, Operation
from inferencecache.events.orphans import Orphans
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


def adoption(blocks: int) -> Callable[[], None]:
    """Return what feeds a prompt backward to somebody new."""
    return partial(Producer().feed, *chain_of(blocks), stored([0], tokens(0, 1)))


@pytest.mark.timeout(60)
def test_a_long_backward_chain_costs_little_per_block() -> None:
    """Sixteen times the blocks take far less than 256 times the time, as pairs would."""
    producer = Producer()
    producer.feed(*chain_of(16_000), stored([0], tokens(0, 1)))
    assert len(producer.held) == 16_001

    few_s, many_s = (least_s(partial(adoption, blocks)) for blocks in (1_000, 16_000))

    assert many_s < 80 * few_s


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


def removal(blocks: int) -> Callable[[], None]:
    """Return what removes so many waiting blocks, all different and all alike."""
    producer = Producer()
    labels = list(range(1, blocks + 1))
    producer.feed(stored(labels, tokens(0, blocks), parent=0))
    producer.feed(*[stored([0], ONE, parent=-1)] * blocks)

    def remove() -> None:
        producer.feed(removed(labels), removed([0] * blocks))
        assert producer.mapper.counters.unknown_removals == 0

    return remove


def test_many_removals_of_waiting_blocks_cost_little_each() -> None:
    """One store, and many stores of one block: each removal finds its copy at once."""
    few_s, many_s = (least_s(partial(removal, blocks)) for blocks in (1_000, 16_000))

    assert many_s < 80 * few_s


ADOPTED_PER_STEP = 300
"""Blocks that one step may place: the step's size, and what one store brings beyond it."""


def placed_by_step(producer: Producer, root: BlockStored) -> list[int]:
    """Take in *root* step by step; return the blocks held after each, which the index follows."""
    held: list[int] = []

    def emit(operations: list[Operation]) -> None:
        producer.index.apply(operations)
        producer.check()
        held.append(producer.mapper.blocks_total)

    for _ in producer.mapper.steps(batch_of([root]), emit, 0):
        continue
    return held


@pytest.mark.parametrize("shape", ["chain", "fan", "removed"])
def test_a_crowd_of_orphans_is_adopted_in_steps(shape: str) -> None:
    """However many wait for one block, no step places more than a few hundred blocks.

    After every step the index holds what the mapper does, and nothing without its parent.
    """
    producer, blocks = Producer(), 3_000
    if shape == "chain":
        waiting = chain_of(blocks)
    else:
        waiting = [stored([n], tokens(16 * n, 1), parent=0) for n in range(1, blocks + 1)]
    producer.mapper.apply(batch_of(waiting), 0)
    if shape == "removed":
        producer.mapper.apply(batch_of([removed(list(range(1, blocks + 1)))]), 0)
    held = placed_by_step(producer, stored([0], tokens(0, 1)))

    assert max(abs(after - before) for before, after in itertools.pairwise([0, *held])) <= (
        ADOPTED_PER_STEP
    )
    assert held[-1] == (1 if shape == "removed" else blocks + 1)
    assert producer.mapper.orphan_blocks == 0
    assert producer.mapper.counters.orphans_resolved == blocks
    assert producer.mapper.counters.unknown_removals == 0


def test_steps_of_an_adoption_run_a_bounded_number_of_lines() -> None:
    """The longest step of ten times the orphans is no longer."""
    longest = {}
    for blocks in (1_000, 10_000):
        producer = Producer()
        producer.mapper.apply(batch_of(chain_of(blocks)), 0)
        steps = producer.mapper.steps(batch_of([stored([0], tokens(0, 1))]), list, 0)
        lines = [lines_run(partial(next, steps, None)) for _ in range(blocks // 100)]
        longest[blocks] = max(lines)
        assert producer.mapper.blocks_total == blocks + 1

    assert longest[10_000] <= 1.1 * longest[1_000]


def test_orphans_that_expire_together_go_in_slices() -> None:
    """No call gives up more than a slice; nothing is forgotten in the end."""
    producer, blocks = Producer(orphan_hold_ns=10), 5_000
    producer.mapper.apply(batch_of(chain_of(blocks)), 0)
    given_up = []
    while producer.mapper.expire(10):
        given_up.append(blocks - producer.mapper.orphan_blocks)

    assert given_up == [1_024, 2_048, 3_072, 4_096]
    assert producer.mapper.orphan_blocks == 0
    assert producer.mapper.counters.orphans_dropped == blocks


def test_another_ranks_batch_between_the_steps_of_an_adoption() -> None:
    """Ranks share keys and a clock, and neither disturbs the other's adoption."""
    producer, blocks = Producer(), 1_000
    producer.mapper.apply(batch_of(chain_of(blocks)), 0)
    own = producer.mapper.steps(batch_of([stored([0], tokens(0, 1))]), producer.index.apply, 0)
    for number, _ in enumerate(own):
        same = (
            stored([number], tokens(0, 1)) if number else stored([0], tokens(0, blocks // 2)[:16])
        )
        producer.feed(same, rank=1)
    producer.feed(CLEARED, rank=1)

    assert producer.held == dict.fromkeys(keys(tokens(0, blocks + 1)), T1)


def test_a_failure_elsewhere_between_the_steps_of_an_adoption() -> None:
    """What was forgotten stays so: the rest of the adoption finds no parent and places nothing."""
    producer, blocks = Producer(), 1_000
    producer.mapper.apply(batch_of(chain_of(blocks)), 0)
    steps = producer.mapper.steps(batch_of([stored([0], tokens(0, 1))]), producer.index.apply, 0)
    next(steps)
    producer.index.apply(producer.mapper.start_over())
    for _ in steps:
        continue

    producer.check()
    assert producer.held == {}
    assert producer.mapper.orphan_blocks == producer.mapper.blocks_total == 0


def test_forgetting_one_rank_costs_nothing_for_the_others_orphans() -> None:
    """A clear runs as many lines beside ten thousand waiting stores of another rank as beside one.

    Its own waiting stores are freed later, in slices.
    """
    cost = {}
    for blocks in (1, 10_000):
        orphans = Orphans(blocks_max=65_536, bytes_max=1 << 30, hold_ns=10)
        for event in chain_of(blocks):
            orphans.hold(0, event, 0)
            orphans.hold(1, event, 0)
        cost[blocks] = lines_run(partial(orphans.clear, 0))
        assert orphans.blocks_total == blocks

    assert cost[10_000] == cost[1]
