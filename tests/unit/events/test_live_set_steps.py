"""However little of what is held has keys to report, a step of the live set stays small."""

from collections.abc import Callable, Iterator

import pytest
from engine_events import Producer, keys, removed, stored, tokens

from inferencecache.events.block_table import BlockTable
from inferencecache.events.blocks import Block
from inferencecache.events.live_set import RUN_KEYS_MAX, STEP_BLOCKS

BLOCKS = 3 * STEP_BLOCKS + 100
LABELS = list(range(BLOCKS))


def opaque(producer: Producer) -> None:
    """Hold blocks that tokens do not describe."""
    producer.feed(stored(LABELS, tokens(0, BLOCKS), opaque_from=0))


def doubtful(producer: Producer) -> None:
    """Hold blocks that may be gone unnoticed."""
    producer.feed(stored(LABELS, tokens(0, BLOCKS)))
    producer.mapper.doubt()


def held_better(producer: Producer) -> None:
    """Hold blocks on the host whose keys others hold on the GPU."""
    producer.feed(stored(LABELS, tokens(0, BLOCKS)))
    others = [label + BLOCKS for label in LABELS]
    producer.feed(stored(others, tokens(0, BLOCKS)))
    producer.feed(stored(LABELS, tokens(0, BLOCKS), medium="CPU"))
    producer.feed(removed(LABELS))


def pages(producer: Producer) -> None:
    """Hold pages that complete no block of the index."""
    producer.feed(*[stored([label], [label], size=1) for label in LABELS])


def roots(producer: Producer) -> None:
    """Hold blocks that are a prompt each."""
    producer.feed(*[stored([label], tokens(16 * label, 1)) for label in LABELS])


def one_prompt(producer: Producer) -> None:
    """Hold a prompt, in one run as long as runs may be."""
    producer.feed(stored(LABELS, tokens(0, BLOCKS)))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the labels of the blocks that walks have looked at since it was emptied."""
    looked_at: list[int] = []
    present = BlockTable.present

    def noting(table: BlockTable) -> Iterator[tuple[int, Block]]:
        for label, block in present(table):
            looked_at.append(label)
            yield label, block

    monkeypatch.setattr(BlockTable, "present", noting)
    return looked_at


@pytest.mark.parametrize(
    ("hold", "reported"),
    [
        (opaque, 0),
        (doubtful, 0),
        (held_better, BLOCKS),
        (pages, 0),
        (roots, BLOCKS),
        (one_prompt, BLOCKS),
    ],
)
def test_a_step_looks_at_few_blocks(
    hold: Callable[[Producer], None], reported: int, looks: list[int]
) -> None:
    """Whatever there is, the loop is given back after so many blocks."""
    producer = Producer()
    hold(producer)
    steps, told = 0, list[int]()
    for runs in producer.mapper.live_set(include_doubtful=False):
        assert len(looks) <= STEP_BLOCKS + 1
        assert all(len(run.keys) <= RUN_KEYS_MAX for run in runs)
        told.extend(key for run in runs for key in run.keys)
        looks.clear()
        steps += 1

    assert steps >= BLOCKS // STEP_BLOCKS
    assert len(told) == len(set(told)) == reported


def test_what_changes_during_a_pause_is_seen() -> None:
    """A step that ends within a prompt leaves no claim open: what goes meanwhile is not told."""
    producer = Producer()
    producer.feed(stored(LABELS, tokens(0, BLOCKS)))
    gone = [*range(STEP_BLOCKS - 2, STEP_BLOCKS + 3), BLOCKS - 1]
    steps = producer.mapper.live_set(include_doubtful=False)
    told = [key for run in next(steps) for key in run.keys]
    producer.feed(removed(gone))
    told += [key for runs in steps for run in runs for key in run.keys]

    names = [key for _, key in keys(tokens(0, BLOCKS))]
    assert told == [
        name
        for position, name in enumerate(names)
        if position < STEP_BLOCKS or position not in gone
    ]
