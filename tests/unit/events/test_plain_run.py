"""Runs of plain blocks: what one is, what is asked of it, and what it may cost."""

import pytest
from engine_events import Producer, keys, removed, stored, tokens

from inferencecache.events.block_table import BlockTable
from inferencecache.events.blocks import Block
from inferencecache.events.plain_run import PlainRun
from inferencecache.events.stretch import STRETCH_BLOCKS
from inferencecache.types import CacheTier


def run_of(table: BlockTable, first: int, blocks: int) -> PlainRun:
    """Return a run of labels from *first* on; the key of a label is 1,000 more."""
    labels = tuple(range(first, first + blocks))
    names = tuple(label + 1_000 for label in labels)
    return PlainRun(table.stretch(""), labels, names, 7, 320, 16)


def objects(table: BlockTable) -> list[Block | PlainRun]:
    """Return what the table keeps for each block."""
    return [found for shard in table.shards for found in shard.values()]


def test_a_block_knows_its_place() -> None:
    """Key, depth and what is before it follow from the position."""
    table = BlockTable()
    run = run_of(table, 0, 4)

    assert run.block(0) == Block(1_000, 336, run.stretch, 1, 7, None)
    assert run.block(3) == Block(1_003, 384, run.stretch, 1, 1_002, None)


@pytest.mark.parametrize("guess", [0, 1, 2, 3, 4, 50])
def test_a_guess_is_only_a_guess(guess: int) -> None:
    """A block is found wherever it is thought to be."""
    run = run_of(BlockTable(), 0, 4)

    assert [run.position(label, guess) for label in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [3, 0, 2, 1], [1, 3, 0, 2]])
def test_blocks_are_taken_in_any_order(order: list[int]) -> None:
    """The end that is taken from is a guess as well."""
    run = run_of(BlockTable(), 0, 4)

    assert [run.take(label) for label in order] == [run.block(label) for label in order]
    assert run.taken == 4


def test_a_run_goes_in_whole_or_not_at_all() -> None:
    """One block that is held is enough to refuse it, and leaves no trace."""
    table = BlockTable()
    assert table.add_run(run_of(table, 0, 10))
    before = list(table.items())
    for first in (9, 5, 0):
        assert not table.add_run(run_of(table, first, 12))
        assert list(table.items()) == before
    table.check_invariants()
    assert table.add_run(run_of(table, 10, 12))
    table.check_invariants()


def test_what_is_changed_in_a_block_stays() -> None:
    """A block that was asked for is the table's own."""
    table = BlockTable()
    table.add_run(run_of(table, 0, 10))
    block = table.get(3)
    assert block is not None
    block.holding = 5

    assert table.get(3) is block
    assert [held.holding for _, held in table.present()] == [1, 1, 1, 5, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("leaving", [range(128), range(127, -1, -1), range(0, 128, 2)])
def test_few_blocks_do_not_keep_a_run(leaving: range) -> None:
    """A run goes once half of it was taken, so none costs more than twice what it holds."""
    table = BlockTable()
    table.add_run(run_of(table, 0, STRETCH_BLOCKS))
    for label in leaving:
        assert table.pop(label) is not None
        table.check_invariants()
        kept = [found for found in objects(table) if isinstance(found, PlainRun)]
        assert not kept or 2 * len(kept) >= STRETCH_BLOCKS
    assert table.pop(leaving[0]) is None


def test_a_walk_through_a_run_shows_what_is_there() -> None:
    """What goes before its turn is not shown, and looking takes nothing out of the run."""
    table = BlockTable()
    run = run_of(table, 0, 20)
    table.add_run(run)
    walk = table.present()
    shown = [next(walk)[0] for _ in range(5)]
    for label in (2, 7, 8):
        table.pop(label)
    shown += [label for label, block in walk if block == run.block(label)]

    assert shown == [label for label in range(20) if label not in {7, 8}]
    assert sum(found is run for found in objects(table)) == 17


def test_one_look_makes_one_block() -> None:
    """To continue a prompt takes its last block out of the run and no other."""
    producer = Producer()
    producer.feed(stored(list(range(100)), tokens(0, 100)))
    producer.feed(stored([100], tokens(1_600, 1), parent=99))
    found = objects(producer.mapper._ranks[0].groups[0].blocks)

    assert sum(isinstance(one, Block) for one in found) == 2
    assert producer.held == dict.fromkeys(keys(tokens(0, 101)), CacheTier.T1)


def test_evictions_out_of_runs_are_exact() -> None:
    """From the end, from the front and out of the middle, each takes its own key."""
    producer = Producer()
    producer.feed(stored(list(range(300)), tokens(0, 300)))
    kept = keys(tokens(0, 300))
    for label in (299, 298, 0, 1, 150, 127, 128, 298):
        producer.feed(removed([label]))
    gone = {0, 1, 127, 128, 150, 298, 299}

    assert producer.mapper.counters.unknown_removals == 1
    assert producer.held == {
        key: CacheTier.T1 for number, key in enumerate(kept) if number not in gone
    }
