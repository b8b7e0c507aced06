"""What a rank or a group had goes in steps, so that nothing else has to wait for it."""

import pytest
from engine_events import CLEARED, Producer, batch_of, keys, stored, tokens

from inferencecache.events import BlockStored, Event, Evict, Operation
from inferencecache.types import CacheTier

T1 = CacheTier.T1
BLOCKS = 3_000
LONG = tokens(0, BLOCKS)
OTHER = tokens(500_000, 2)
STEP_KEYS_MAX = 512

TURNED = stored([9], OTHER[:16], kv_cache_spec_kind="mamba")


def long_prompt() -> BlockStored:
    """Return a store of many blocks."""
    return stored(list(range(1_000, 1_000 + BLOCKS)), LONG)


def beside_another_rank() -> Producer:
    """Return a producer whose rank 0 has many blocks, two of which rank 1 has as well."""
    producer = Producer()
    producer.feed(long_prompt(), rank=0)
    producer.feed(stored([1, 2], LONG[:32]), rank=1)
    return producer


def evicted(operations: list[Operation]) -> int:
    """Return how many keys go."""
    return sum(len(found.keys) for found in operations if isinstance(found, Evict))


@pytest.mark.parametrize("event", [CLEARED, TURNED], ids=["clear", "group of another kind"])
def test_many_blocks_go_in_steps_and_others_work_meanwhile(event: Event) -> None:
    """No step is long; after each, index and mapper agree, and another rank's batch is taken in."""
    producer = beside_another_rank()
    told: list[int] = []

    def emit(operations: list[Operation]) -> None:
        told.append(evicted(operations))
        producer.index.apply(operations)

    for _ in producer.mapper.steps(batch_of([event], rank=0), emit, 0):
        producer.check()
        if len(told) == 3:
            producer.feed(stored([5, 6], OTHER), rank=1)
    producer.check()

    assert STEP_KEYS_MAX - 2 <= max(told) <= STEP_KEYS_MAX
    assert producer.held == dict.fromkeys([*keys(LONG[:32]), *keys(OTHER)], T1)
    assert producer.mapper.blocks_total == 4


def test_a_restart_beside_other_ranks_goes_on_with_the_next_batch() -> None:
    """What a reset leaves over is gone before anything new is taken in."""
    producer = beside_another_rank()
    operations = producer.mapper.reset(0)
    assert 0 < evicted(operations) <= STEP_KEYS_MAX
    producer.index.apply(operations)
    producer.check()
    steps = producer.mapper.live_set(include_doubtful=True)
    again = [key for runs in steps for run in runs for key in run.keys]
    assert sorted(again) == sorted(key for _, key in keys(LONG[:32]))

    producer.feed(stored([1_000], OTHER[:16]), rank=0)
    assert producer.held == dict.fromkeys([*keys(LONG[:32]), *keys(OTHER[:16])], T1)


def test_what_leaves_is_forgotten_at_once_when_nobody_else_is_there() -> None:
    """A clear of the last rank takes along what another has not finished with."""
    producer = beside_another_rank()
    producer.index.apply(producer.mapper.reset(0))
    producer.feed(CLEARED, rank=1)

    assert producer.held == {}
    assert producer.mapper.blocks_total == 0
    assert list(producer.mapper.withdraw(producer.index.apply)) == []


def test_bounds_count_what_is_leaving() -> None:
    """Blocks on their way out make room first of all."""
    producer = Producer(blocks_max=BLOCKS + 10)
    producer.feed(long_prompt(), rank=0)
    producer.feed(stored([1], OTHER[:16]), rank=1)
    producer.index.apply(producer.mapper.reset(0))
    producer.feed(stored(list(range(BLOCKS)), tokens(200_000, BLOCKS)), rank=1)

    assert producer.mapper.counters.overflowed_blocks == 0
    assert producer.mapper.blocks_total == BLOCKS
