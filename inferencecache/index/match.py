"""Match a request against one partition: who holds how much of it, how fresh, how cold.

Reads never change anything.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from inferencecache.index.packing import common_blocks, pack
from inferencecache.types import INT32_MAX, Candidate

if TYPE_CHECKING:
    from inferencecache.index.partition import Partition
    from inferencecache.index.run import Incarnation, Run

_PIECE_BLOCKS = 512


class _PackedRequest:
    """The request's blocks, packed piece by piece as far as the match gets."""

    __slots__ = ("_hashes", "_ready", "_width", "packed", "stride")

    def __init__(self, hashes: list[bytes], partition: Partition) -> None:
        self._hashes = hashes
        self._width = partition.width
        self.stride = partition.stride
        self.packed = b""
        self._ready = 0

    def extent(self, run: Run, start: int, at: int) -> int:
        """Return how many blocks request and run share from *at* and *start* on."""
        need = min(at + run.length - start, len(self._hashes))
        if need > self._ready:
            stop = min(max(need, self._ready + _PIECE_BLOCKS), len(self._hashes))
            self.packed += pack(self._hashes[self._ready : stop], self._width)
            self._ready = stop
        stride = self.stride
        if not start and self.packed.startswith(run.packed, at * stride):
            return run.length
        return common_blocks(self.packed, at * stride, run.packed, start * stride, stride)


class ChainMatch:
    """One walk of a chain through a partition.

    Theory of operation: blocks of one run have the same holders, so replicas join and leave only
    at run boundaries. At each boundary a replica goes on if it holds the next run and is fresh
    there; otherwise its match ends. The walk ends with the last replica.

    Args:
        partition: Where to look.
        hashes: The request's blocks, not empty.
        stale_ns: Stamps at or before this have outlived their TTL.
    """

    __slots__ = ("_ended", "_hashes", "_oldest", "_partition", "_stale_ns", "_tiers")

    def __init__(self, partition: Partition, hashes: list[bytes], stale_ns: int) -> None:
        self._partition = partition
        self._hashes = hashes
        self._stale_ns = stale_ns
        self._oldest: dict[Incarnation, int] = {}
        self._tiers: dict[Incarnation, int] = {}
        self._ended: list[tuple[Incarnation, int, int]] = []

    def walk(self) -> list[tuple[Incarnation, int, int]]:
        """Return (incarnation, matched blocks, oldest last_seen_ns) of every replica that matched.

        Complexity: O(runs met * holders), plus one comparison per run.
        """
        hashes, run_of = self._hashes, self._partition.run_of
        request = _PackedRequest(hashes, self._partition)
        at, blocks = 0, len(hashes)
        while at < blocks:
            block_hash = hashes[at]
            run = run_of.get(block_hash)
            if run is None or not (self._go_on(run, at) if at else self._begin(run)):
                break
            if run.length == 1:
                at += 1
            else:
                start = self._partition.position(run, block_hash)
                at += request.extent(run, start, at)
        self._ended += [(who, at, oldest) for who, oldest in self._oldest.items()]
        return self._ended

    def tier_of(self, incarnation: Incarnation) -> int:
        """Return the coldest tier of a replica's match, in the request's walk so far.

        Complexity: O(1).
        """
        return self._tiers.get(incarnation, 1)

    def _begin(self, run: Run) -> bool:
        stale_ns = self._stale_ns
        self._oldest = {
            who: hold.last_seen_ns
            for who, hold in run.holds.items()
            if hold.last_seen_ns > stale_ns and not who.is_cleared
        }
        if run.is_tiered:
            self._fold_tiers(run)
        return bool(self._oldest)

    def _go_on(self, run: Run, at: int) -> bool:
        alive, holds = self._oldest, run.holds
        gone: list[Incarnation] = []
        for who, oldest in alive.items():
            hold = holds.get(who)
            if hold is None:
                gone.append(who)
            elif hold.last_seen_ns < oldest:
                if hold.last_seen_ns <= self._stale_ns:
                    gone.append(who)
                else:
                    alive[who] = hold.last_seen_ns
        if gone:
            self._ended += [(who, at, alive.pop(who)) for who in gone]
        if run.is_tiered:
            self._fold_tiers(run)
        return bool(alive)

    def _fold_tiers(self, run: Run) -> None:
        tiers = self._tiers
        for who in self._oldest:
            tier = run.holds[who].tier
            if tier > tiers.get(who, 1):
                tiers[who] = tier


def match_chain(
    partition: Partition, hashes: list[bytes], counts: list[int], stale_ns: int
) -> list[Candidate]:
    """Return the replicas that hold a leading part of a chain.

    Args:
        partition: Where to look.
        hashes: The request's blocks.
        counts: Tokens of each block, parallel to *hashes*, >= 0.
        stale_ns: Stamps at or before this have outlived their TTL.

    Complexity: O(runs met * holders), plus comparing and summing at about 15 ns per matched block.
    """
    walk = ChainMatch(partition, hashes, stale_ns)
    ended = walk.walk()
    if not ended:
        return []
    step = counts[0]
    if counts.count(step) == len(counts):
        return [
            (who.replica_id, min(blocks * step, INT32_MAX), oldest, walk.tier_of(who), blocks)
            for who, blocks, oldest in ended
            if step
        ]
    deepest = max(blocks for _, blocks, _ in ended)
    sums = list(accumulate(counts[:deepest]))
    return [
        (who.replica_id, min(sums[blocks - 1], INT32_MAX), oldest, walk.tier_of(who), blocks)
        for who, blocks, oldest in ended
        if sums[blocks - 1]
    ]


def match_exact(partition: Partition, block_hash: bytes, stale_ns: int) -> list[Candidate]:
    """Return the replicas that hold one block, with the token counts they stored.

    Complexity: O(holders), and O(run length) to find a block in the middle of a run.
    """
    run = partition.run_of.get(block_hash)
    if run is None:
        return []
    at = partition.position(run, block_hash)
    return [
        (
            who.replica_id,
            (hold.token_counts or run.token_counts)[at],
            hold.last_seen_ns,
            hold.tier,
            1,
        )
        for who, hold in run.holds.items()
        if hold.last_seen_ns > stale_ns and not who.is_cleared
    ]
