"""Blocks find their runs, in one dictionary or in many, and no insertion rebuilds them all."""

import random
import sys
from itertools import pairwise

import pytest

from inferencecache.index import block_table
from inferencecache.index.block_table import PARTS, BlockTable
from inferencecache.index.packing import pack_single, pack_uniform
from inferencecache.index.run import Run

CHAIN = [bytes((number, number)) for number in range(1, 41)]


@pytest.fixture(params=[8, 1_000], ids=["in parts", "whole"])
def table(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> BlockTable:
    """Give a table of 20 blocks, in parts or not."""
    monkeypatch.setattr(block_table, "SPLIT_BLOCKS", request.param)
    table = BlockTable()
    assert add(table, CHAIN[:20], run_of(CHAIN[:20]))
    return table


def run_of(hashes: list[bytes]) -> Run:
    """Return a run; whose it is does not matter here."""
    return Run(None, pack_uniform(hashes), len(hashes), range(1, len(hashes) + 1))  # type: ignore[arg-type]


def add(table: BlockTable, hashes: list[bytes], run: Run) -> bool:
    """Add *hashes* to *table*."""
    return table.add(hashes, pack_uniform(hashes), run)


def test_blocks_find_their_run(table: BlockTable) -> None:
    """Known blocks name the run they were added with, unknown and empty ones nothing."""
    (run,) = table.runs()
    other = run_of(CHAIN[20:])

    assert add(table, CHAIN[20:], other)
    assert [table.get(block) for block in CHAIN] == [run] * 20 + [other] * 20
    assert (table.get(b"\1"), table.get(b"")) == (None, None)
    assert len(table) == 40
    assert CHAIN[0] in table
    assert b"" not in table


@pytest.mark.parametrize("again", [CHAIN[30:] + CHAIN[:1], CHAIN[30:] + CHAIN[30:31]])
def test_a_block_that_is_known_or_comes_twice_changes_nothing(
    table: BlockTable, again: list[bytes]
) -> None:
    """A run that cannot be added whole is not added."""
    before = {block: table.get(block) for block in CHAIN}

    assert not add(table, again, run_of(again))
    assert {block: table.get(block) for block in CHAIN} == before
    assert len(table) == 20


def test_blocks_move_and_go(table: BlockTable) -> None:
    """Blocks change their run together, and leave together or alone."""
    other = run_of(CHAIN[4:9])
    table.move(CHAIN[4:9], pack_uniform(CHAIN[4:9]), other)
    assert [table.get(block) is other for block in CHAIN[3:10]] == [False, *[True] * 5, False]

    table.move(CHAIN[:1], pack_uniform(CHAIN[:1]), other)
    assert table.get(CHAIN[0]) is other

    table.remove(CHAIN[:9], pack_uniform(CHAIN[:9]))
    table.remove_one(CHAIN[9])
    assert [table.get(block) for block in CHAIN[:10]] == [None] * 10
    assert len(table) == 10
    assert len(table.runs()) == 1


def test_a_hash_too_wide_to_be_packed_is_one_block(table: BlockTable) -> None:
    """It is found by the last byte of its hash like any other."""
    wide = b"w" * 299 + b"\7"
    run = Run(None, pack_single(wide), 1, range(1, 2))  # type: ignore[arg-type]

    assert table.add([wide], run.packed, run)
    assert table.get(wide) is run
    table.remove([wide], run.packed)
    assert table.get(wide) is None


def test_parts_share_the_blocks_of_a_big_table() -> None:
    """The biggest dictionary is a small part of a big table, and none is left from before."""
    rng, table = random.Random(1), BlockTable()
    blocks = [rng.randbytes(8) for _ in range(64 * 1_024)]
    for start, stop in pairwise(range(0, len(blocks) + 1, 512)):
        assert add(table, blocks[start:stop], run_of(blocks[start:stop]))

    sizes = [len(part) for part in table._parts]
    assert sum(sizes) == len(table) == len(blocks)
    assert len(sizes) == PARTS
    assert max(sizes) < 1.2 * len(blocks) / PARTS
    assert len({table.get(block) for block in blocks}) == len(blocks) // 512


@pytest.mark.parametrize("seed", [1, 2])
def test_a_report_waits_for_few_rebuilt_dictionaries(seed: int) -> None:
    """Where as many blocks go as come, no report moves more than a fourteenth of a table's slots.

    Whether a dictionary was rebuilt shows in its size, which doubles once after the table has
    stopped growing.
    """
    rng, table, blocks_max = random.Random(seed), BlockTable(), 256 * 1_024
    reports = [
        [data[at : at + 8] for at in range(0, len(data), 8)]
        for data in (rng.randbytes(8 * 512) for _ in range(blocks_max // 512 + 700))
    ]
    filling, churning = reports[: blocks_max // 512], reports[blocks_max // 512 :]
    for hashes in filling:
        assert add(table, hashes, run_of(hashes))

    moved = []
    for oldest, hashes in zip(reports, churning, strict=False):
        sizes = [sys.getsizeof(part) for part in table._parts]
        assert add(table, hashes, run_of(hashes))
        rebuilt = [
            part
            for part, size in zip(table._parts, sizes, strict=True)
            if sys.getsizeof(part) != size
        ]
        moved.append(sum(map(len, rebuilt)))
        table.remove(oldest, pack_uniform(oldest))

    assert len(table) == blocks_max
    assert sum(moved) > 0.99 * blocks_max
    assert max(moved) <= blocks_max / 14


def test_a_small_table_is_one_dictionary() -> None:
    """Ten thousand small partitions do not each pay for parts."""
    table = BlockTable()
    assert add(table, CHAIN, run_of(CHAIN))

    assert len(table._parts) == 1
    assert table._places is None
