"""A table of blocks is a dictionary that remembers its order, whatever is put in and taken out."""

from engine_events import Producer, keys, removed, stored, tokens
from hypothesis import given, settings
from hypothesis import strategies as st

from inferencecache.events.block_table import BlockTable
from inferencecache.events.blocks import Block
from inferencecache.events.plain_run import PlainRun
from inferencecache.events.shards import SHARD_MASK
from inferencecache.events.stretch import STRETCH_BLOCKS
from inferencecache.types import CacheTier

LABELS = st.integers(0, 400)
ACTIONS = st.sampled_from(["insert", "add_run", "get", "pop"])
RUNS = st.tuples(LABELS, st.integers(1, 300), ACTIONS)


def block_of(table: BlockTable, adapter_id: str = "") -> Block:
    """Return a block for the youngest place."""
    return Block(None, 0, table.stretch(adapter_id), 1, None, None)


def add_run(table: BlockTable, model: dict[int, Block], labels: range) -> None:
    """Add a run where none of it is held, to both."""
    run = PlainRun(table.stretch(""), tuple(labels), tuple(labels), None, 0, 16)
    is_free = model.keys().isdisjoint(labels)
    assert table.add_run(run) is is_free
    if is_free:
        model.update((label, run.block(position)) for position, label in enumerate(labels))


@settings(deadline=None)  # large examples check a large table thirty times
@given(st.lists(RUNS, max_size=30))
def test_it_does_what_a_dictionary_does(runs: list[tuple[int, int, str]]) -> None:
    """Insertions one by one and in runs, looks and removals, from either end."""
    table, model = BlockTable(), dict[int, Block]()
    for first, blocks, action in runs:
        labels = range(first, first + blocks)
        if action == "add_run":
            add_run(table, model, labels[:STRETCH_BLOCKS])
        for label in reversed(labels) if first % 2 else labels:
            if action == "pop":
                assert table.pop(label) == model.pop(label, None)
            elif action == "get":
                assert table.get(label) == model.get(label)
            elif action == "insert" and label not in model:
                model[label] = block_of(table)
                table.insert(label, model[label])
        table.check_invariants()

    table.check_invariants()
    assert list(table.oldest()) == list(model)
    assert list(table.present()) == list(model.items())
    assert dict(table.items()) == model
    assert table.first(7) == list(model)[:7]
    assert len(table) == len(model)
    assert all((label in table) is (label in model) for label in range(800))
    assert all(table.get(label) == model.get(label) for label in range(800))


@given(st.lists(st.tuples(LABELS, st.sampled_from(["", "a", "b"])), max_size=300))
def test_each_partition_keeps_its_own_order(rows: list[tuple[int, str]]) -> None:
    """Stores of several adapters take turns without an end of stretches."""
    table, model = BlockTable(), dict[int, str]()
    for label, adapter_id in rows:
        if label not in model:
            model[label] = adapter_id
            table.insert(label, block_of(table, adapter_id))
    table.check_invariants()
    for wanted in ("", "a", "b"):
        expected = [label for label, adapter_id in model.items() if adapter_id == wanted]
        found = list(table.oldest())
        assert [label for label in found if model[label] == wanted] == expected
    assert len({block.stretch.number for block in table.values()}) <= 3 * (
        1 + len(model) // STRETCH_BLOCKS
    )


def test_what_comes_and_goes_during_a_walk_is_neither_invented_nor_repeated() -> None:
    """A walk shows each block once, and none that has gone."""
    table = BlockTable()
    for label in range(1_000):
        table.insert(label, block_of(table))
    walk = table.present()
    seen = [next(walk) for _ in range(10)]
    for label in (*range(5, 20), 999):
        table.pop(label)
    for label in range(5, 20):
        table.insert(label, block_of(table))
    rest = list(walk)

    assert len({id(block) for _, block in (*seen, *rest)}) == len(seen) + len(rest)
    assert all(table.get(label) is block for label, block in rest)
    assert len(rest) >= 1_000 - 10 - 16


def test_no_part_of_a_large_table_is_large() -> None:
    """So none of them takes long to grow, neither of blocks nor of keys."""
    producer = Producer()
    blocks = 40_000
    for first in range(0, blocks, 1_000):
        producer.feed(stored(list(range(first, first + 1_000)), tokens(16 * first, 1_000)))
    shards = [
        *producer.mapper._ranks[0].groups[0].blocks.shards,
        *producer.mapper._ledger.keys.partition(""),
    ]

    assert producer.mapper.blocks_total == producer.mapper.keys_total == blocks
    assert len(shards) == 2 * (SHARD_MASK + 1)
    assert max(map(len, shards)) <= 1.5 * blocks / (SHARD_MASK + 1)


def test_a_repeated_store_that_replaces_blocks_keeps_the_order() -> None:
    """Blocks that come to mean other content are the youngest, and one store may hold some."""
    producer = Producer()
    producer.feed(stored(list(range(300)), tokens(0, 300)))
    producer.feed(stored([7, 1_000, 8, 1_001], tokens(90_000, 4)))
    table = producer.mapper._ranks[0].groups[0].blocks

    producer.mapper.check_invariants()
    assert list(table.oldest()) == [label for label in range(300) if label not in {7, 8}] + [
        7,
        1_000,
        8,
        1_001,
    ]
    producer.feed(removed([1_001, 8, 1_000, 7]))
    kept = [key for number, key in enumerate(keys(tokens(0, 300))) if number not in {7, 8}]
    assert producer.held == dict.fromkeys(kept, CacheTier.T1)
