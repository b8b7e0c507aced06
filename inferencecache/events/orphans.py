"""Stores whose parent is unknown, held for a while and never given a root of their own.

A store names its parent; when that was never seen, the position of its blocks is unknown, and
indexing them as a prompt's start would answer for a different prompt. They wait here, bounded in
number and time, until the parent arrives. A store waits once, from its arrival on.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from inferencecache.events.mediums import lane_of
from inferencecache.events.messages import BlockRemoved, BlockStored
from inferencecache.events.orphan_places import Copy, OrphanPlaces, Place


@dataclass(slots=True, eq=False)
class Orphan:
    """One store that waits.

    Attributes:
        rank: Rank it came from.
        event: The store.
        deadline_ns: When it is given up.
        removals: Removals of its blocks seen meanwhile, to be applied after it is placed.
    """

    rank: int
    event: BlockStored
    deadline_ns: int
    removals: list[BlockRemoved] = field(default_factory=list)


class Orphans:
    """All waiting stores of one replica; none names a hash twice.

    Args:
        blocks_max: Most blocks held; the oldest stores make room.
        hold_ns: How long a store waits.

    Attributes:
        blocks_total: Blocks held.
    """

    def __init__(self, *, blocks_max: int, hold_ns: int) -> None:
        self._blocks_max = blocks_max
        self._hold_ns = hold_ns
        self._queue: OrderedDict[Orphan, None] = OrderedDict()
        self._by_parent: OrphanPlaces[Place, Orphan] = OrphanPlaces()
        self._unremoved: OrphanPlaces[Copy, Orphan] = OrphanPlaces()
        self.blocks_total = 0

    def hold(self, rank: int, event: BlockStored, now_ns: int) -> int:
        """Keep *event* until its parent arrives; return how many blocks were dropped for it."""
        blocks = len(event.block_hashes)
        if blocks > self._blocks_max:
            return blocks
        orphan = Orphan(rank=rank, event=event, deadline_ns=now_ns + self._hold_ns)
        self._queue[orphan] = None
        self._by_parent.add(_parent_place(rank, event), orphan)
        for copy in _copies(orphan):
            self._unremoved.add(copy, orphan)
        self.blocks_total += blocks
        dropped = 0
        while self.blocks_total > self._blocks_max:
            dropped += self._drop_oldest()
        return dropped

    def take(self, rank: int, group_idx: int, engine_hashes: Iterable[int]) -> list[Orphan]:
        """Remove and return the stores that wait for one of *engine_hashes*, oldest first."""
        found: list[Orphan] = []
        for engine_hash in engine_hashes:
            found.extend(self._by_parent.pop_all(Place(rank, group_idx, engine_hash)))
        for orphan in found:
            self._forget(orphan)
        return found

    def note_removal(self, rank: int, event: BlockRemoved, engine_hash: int) -> bool:
        """Remember that a block left a medium; False if no waiting store has a copy to lose."""
        # Removals apply to the oldest store that still has a copy left to lose.
        copy = Copy(rank, event.group_idx, engine_hash, lane_of(event.medium))
        orphan = self._unremoved.pop_oldest(copy)
        if orphan is None:
            return False
        orphan.removals.append(
            BlockRemoved(block_hashes=[engine_hash], medium=event.medium, group_idx=event.group_idx)
        )
        return True

    def expire(self, now_ns: int) -> int:
        """Drop what has waited too long; return how many blocks that was."""
        dropped = 0
        while self._queue and next(iter(self._queue)).deadline_ns <= now_ns:
            dropped += self._drop_oldest()
        return dropped

    def clear(self, rank: int) -> None:
        """Forget everything of *rank*."""
        for orphan in [orphan for orphan in self._queue if orphan.rank == rank]:
            self._forget(orphan)

    def _drop_oldest(self) -> int:
        oldest = next(iter(self._queue))
        self._forget(oldest)
        return len(oldest.event.block_hashes)

    def _forget(self, orphan: Orphan) -> None:
        del self._queue[orphan]
        self.blocks_total -= len(orphan.event.block_hashes)
        self._by_parent.discard(_parent_place(orphan.rank, orphan.event), orphan)
        for copy in _copies(orphan):
            self._unremoved.discard(copy, orphan)


def _parent_place(rank: int, event: BlockStored) -> Place:
    assert event.parent_block_hash is not None, "a root waits for nobody"  # noqa: S101 - ours
    return Place(rank, event.group_idx, event.parent_block_hash)


def _copies(orphan: Orphan) -> list[Copy]:
    event = orphan.event
    lane = lane_of(event.medium)
    return [
        Copy(orphan.rank, event.group_idx, engine_hash, lane) for engine_hash in event.block_hashes
    ]
