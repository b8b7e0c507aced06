"""Stores whose parent is unknown, held for a while and never given a root of their own.

A store names its parent; when that was never seen, the position of its blocks is unknown, and
indexing them as a prompt's start would answer for a different prompt. They wait here, bounded in
number and time, until the parent arrives.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from inferencecache.events.messages import BlockRemoved, BlockStored


class Place(NamedTuple):
    """An engine hash within its name space."""

    rank: int
    group_idx: int
    engine_hash: int


@dataclass(slots=True, eq=False)
class Orphan:
    """One store that waits.

    Attributes:
        rank: Rank it came from.
        event: The store.
        deadline_ns: When it is given up.
        removals: Removals of its blocks seen meanwhile, to be applied after it is placed.
        is_waiting: False once it was taken or dropped.
    """

    rank: int
    event: BlockStored
    deadline_ns: int
    removals: list[BlockRemoved] = field(default_factory=list)
    is_waiting: bool = True


class Orphans:
    """All waiting stores of one replica.

    Args:
        blocks_max: Most blocks held; the oldest stores make room.
        hold_ns: How long a store waits.
    """

    def __init__(self, *, blocks_max: int, hold_ns: int) -> None:
        self._blocks_max = blocks_max
        self._hold_ns = hold_ns
        self._queue: deque[Orphan] = deque()
        self._by_parent: dict[Place, list[Orphan]] = {}
        self._by_hash: dict[Place, list[Orphan]] = {}
        self.blocks_total = 0

    def hold(self, rank: int, event: BlockStored, now_ns: int) -> int:
        """Keep *event* until its parent arrives; return how many blocks were dropped for it."""
        blocks = len(event.block_hashes)
        if blocks > self._blocks_max:
            return blocks
        orphan = Orphan(rank=rank, event=event, deadline_ns=now_ns + self._hold_ns)
        self._queue.append(orphan)
        self._by_parent.setdefault(_parent_place(rank, event), []).append(orphan)
        for place in _places(orphan):
            self._by_hash.setdefault(place, []).append(orphan)
        self.blocks_total += blocks
        dropped = 0
        while self.blocks_total > self._blocks_max:
            dropped += self._drop_oldest()
        return dropped

    def take(self, rank: int, group_idx: int, engine_hashes: Iterable[int]) -> list[Orphan]:
        """Remove and return the stores that wait for one of *engine_hashes*, oldest first."""
        found: list[Orphan] = []
        for engine_hash in engine_hashes:
            found.extend(self._by_parent.get(Place(rank, group_idx, engine_hash), ()))
        for orphan in found:
            self._forget(orphan)
        return found

    def note_removal(self, rank: int, event: BlockRemoved, engine_hash: int) -> bool:
        """Remember that a block left a medium; True if a waiting store announced that block."""
        waiting = self._by_hash.get(Place(rank, event.group_idx, engine_hash))
        if not waiting:
            return False
        one = BlockRemoved(
            block_hashes=[engine_hash], medium=event.medium, group_idx=event.group_idx
        )
        # Removals apply to the oldest store that still has a copy left to lose.
        for orphan in waiting:
            if not any(known.block_hashes == [engine_hash] for known in orphan.removals):
                orphan.removals.append(one)
                return True
        return True

    def expire(self, now_ns: int) -> int:
        """Drop what has waited too long; return how many blocks that was."""
        dropped = 0
        while self._queue and self._queue[0].deadline_ns <= now_ns:
            dropped += self._drop_oldest()
        self._skip_taken()
        return dropped

    def clear(self, rank: int) -> None:
        """Forget everything of *rank*."""
        for orphan in [orphan for orphan in self._queue if orphan.rank == rank]:
            if orphan.is_waiting:
                self._forget(orphan)
        self._queue = deque(orphan for orphan in self._queue if orphan.is_waiting)

    def _drop_oldest(self) -> int:
        orphan = self._queue.popleft()
        if not orphan.is_waiting:
            return 0
        self._forget(orphan)
        return len(orphan.event.block_hashes)

    def _skip_taken(self) -> None:
        while self._queue and not self._queue[0].is_waiting:
            self._queue.popleft()

    def _forget(self, orphan: Orphan) -> None:
        event = orphan.event
        orphan.is_waiting = False
        self.blocks_total -= len(event.block_hashes)
        _discard(self._by_parent, _parent_place(orphan.rank, event), orphan)
        for place in _places(orphan):
            _discard(self._by_hash, place, orphan)


def _parent_place(rank: int, event: BlockStored) -> Place:
    assert event.parent_block_hash is not None, "a root waits for nobody"  # noqa: S101 - ours
    return Place(rank, event.group_idx, event.parent_block_hash)


def _places(orphan: Orphan) -> list[Place]:
    event = orphan.event
    return [
        Place(orphan.rank, event.group_idx, engine_hash)
        for engine_hash in dict.fromkeys(event.block_hashes)
    ]


def _discard(lists: dict[Place, list[Orphan]], place: Place, orphan: Orphan) -> None:
    remaining = lists[place]
    remaining.remove(orphan)
    if not remaining:
        del lists[place]
