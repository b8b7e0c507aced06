"""A batch in slices makes the same keys, operations and counts as in one piece."""

import random

import pytest
from engine_events import CLEARED, Producer, batch_of, keys, moved, removed, stored, tokens
from held_index import HeldIndex

from inferencecache.events import BlockRemoved, BlockStored, Event, EventMapper, batch_slices
from inferencecache.settings.producer import MapperSettings

PROMPT = tokens(1, 40)
HASHES = list(range(100, 140))


def blocks_of(event: Event) -> int:
    """Return how many blocks an event is about."""
    return len(event.block_hashes) if isinstance(event, BlockStored | BlockRemoved) else 1


def outcome(events: list[Event], blocks_max: int) -> tuple[object, object]:
    """Return what an index holds and what was counted after *events* in slices."""
    mapper = EventMapper(MapperSettings())
    index = HeldIndex(16)
    for part in batch_slices(batch_of(events, rank=3), blocks_max):
        index.apply(mapper.apply(part, 0))
    mapper.check_invariants()
    return index.tiers(), mapper.counters


@pytest.mark.parametrize("blocks_max", [1, 2, 3, 7, 16, 39, 40, 41])
def test_slices_make_what_the_whole_makes(blocks_max: int) -> None:
    """Stores, opaque ends, removals, clears, moves and orphans, cut anywhere."""
    events: list[Event] = [
        stored([1], tokens(9_000, 1)),
        CLEARED,
        stored(HASHES, [*PROMPT, 7, 8], opaque_from=33),
        stored([200, 201], tokens(5_000, 2), parent=HASHES[5]),
        stored([300, 301, 302], tokens(6_000, 3), parent=999),
        removed(HASHES[10:25]),
        moved(HASHES[:9], "CPU"),
        stored([999], tokens(7_000, 1), parent=201),
    ]

    assert outcome(events, blocks_max) == outcome(events, 1_000)


def test_a_small_batch_is_not_touched() -> None:
    """The very batch comes out."""
    batch = batch_of([stored(HASHES, PROMPT), CLEARED])

    assert list(batch_slices(batch, 41)) == [batch]
    assert next(batch_slices(batch, 41)) is batch


def test_slices_are_small_and_events_counted_once() -> None:
    """No slice is larger than allowed; what an earlier one began is marked; faults come once."""
    batch = batch_of([CLEARED, stored(HASHES, PROMPT), removed(HASHES), stored([1], tokens(1, 1))])
    batch.faults["medium"] = 2
    slices = list(batch_slices(batch, 16))

    assert [sum(map(blocks_of, part.events)) for part in slices] == [1, 16, 16, 8, 16, 16, 9]
    assert sum(len(part.events) - part.begun_events for part in slices) == len(batch.events)
    assert [part.faults for part in slices] == [{"medium": 2}, *[{}] * 6]
    assert [part.is_rest for part in slices] == [False, *[True] * 6]


def test_a_store_that_is_its_own_parent_stays_whole() -> None:
    """Only the whole event shows it, and it is refused as that."""
    event = stored(HASHES, PROMPT, parent=HASHES[30])
    (part,) = batch_slices(batch_of([event]), 16)

    assert part.events == [event]


def test_random_lives_do_not_depend_on_slices() -> None:
    """Many stores, copies and removals of random length."""
    rng = random.Random(20_261)
    whole, cut = Producer(), Producer()
    for step in range(60):
        length = rng.randint(1, 30)
        start = rng.choice([1, 4_000])
        events: list[Event] = [
            stored([start + number for number in range(length)], tokens(start, length)),
            removed([start + rng.randrange(30) for _ in range(rng.randint(0, 9))]),
        ]
        whole.feed(*events)
        for part in batch_slices(batch_of(events), rng.randint(1, 9)):
            cut.index.apply(cut.mapper.apply(part, 0))
        cut.check()

        assert cut.mapper.held_keys() == whole.mapper.held_keys(), step
    assert set(whole.mapper.held_keys()) <= set(keys(tokens(1, 30)) + keys(tokens(4_000, 30)))
