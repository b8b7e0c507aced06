"""Memory per block, as growth of the resident set of a process that does nothing else.

Workload: 1 M blocks in chains of 512 from one replica; then a second replica reports the same
chains, with hashes of its own as they come off a wire. Each structure is built in a fresh process.
Seed: ``workload.SEED``. Budget: about 10 s.
"""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.naive import NaiveIndex
from benchmarks.options import Options
from benchmarks.peer import SKIP_NOTE, load_peer, numbers
from benchmarks.row import Bound, Row
from benchmarks.workload import (
    CHAIN_BLOCKS,
    START_NS,
    Chain,
    chain_update,
    chains,
    counts_of,
    new_index,
)

Report = Callable[[int, Chain], None]
"""Stores a chain for the replica with this number."""


def run(options: Options) -> Iterator[Row]:
    """Yield bytes per block of the first replica and of a further one."""
    blocks = options.blocks_max
    ours, naive = _measure("index", blocks), _measure("naive", blocks)
    peer = _measure("peer", blocks) if load_peer() is not None else None
    note = SKIP_NOTE if peer is None else ""
    yield Row(
        what=f"memory, {blocks // 1_000:,} k blocks in 512-block chains, one replica",
        unit="B/block",
        value=ours[0],
        bound=Bound.AT_MOST,
        target=110,
        naive=naive[0],
        peer=peer[0] if peer else None,
        note=note,
    )
    yield Row(
        what="memory of a further replica on the same chains",
        unit="B/block",
        value=ours[1],
        bound=Bound.AT_MOST,
        target=4,
        naive=naive[1],
        peer=peer[1] if peer else None,
        note=note,
    )


def _measure(structure: str, blocks: int) -> list[float]:
    """Return bytes per block of the first and of a second replica, measured in a new process."""
    command = [sys.executable, "-m", "benchmarks.memory", structure, str(blocks)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    growth: list[float] = json.loads(output)
    return growth


def _build(structure: str, blocks: int) -> list[float]:
    report = _STRUCTURES[structure]()
    count = blocks // CHAIN_BLOCKS
    for chain in chains(4, seed=1):
        report(0, chain)
    before = _resident_bytes()
    growth = []
    for replica in range(2):
        for chain in chains(count):
            report(replica, chain)
        after = _resident_bytes()
        growth.append((after - before) / (count * CHAIN_BLOCKS))
        before = after
    return growth


def _index_report() -> Report:
    index, counts = new_index(), counts_of(next(chains(1)))

    def report(replica: int, chain: Chain) -> None:
        index.report(chain_update(f"replica-{replica}", chain, counts), START_NS + replica)

    return report


def _naive_report() -> Report:
    naive, counts = NaiveIndex(), counts_of(next(chains(1)))

    def report(replica: int, chain: Chain) -> None:
        naive.report(f"replica-{replica}", chain, counts, START_NS + replica)

    return report


def _peer_report() -> Report:
    peer = load_peer()
    if peer is None:
        raise RuntimeError(SKIP_NOTE)

    def report(replica: int, chain: Chain) -> None:
        peer.report(replica, numbers(chain))

    return report


_STRUCTURES: dict[str, Callable[[], Report]] = {
    "index": _index_report,
    "naive": _naive_report,
    "peer": _peer_report,
}


def _resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print(json.dumps(_build(sys.argv[1], int(sys.argv[2]))))
