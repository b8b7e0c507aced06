"""Stores whose parent is unknown, held for a while and never given a root of their own.

A store names its parent; when that was never seen, the position of its blocks is unknown, and
indexing them as a prompt's start would answer for a different prompt. They wait here, bounded in
number, bytes and time, until the parent arrives. A store waits once, from its arrival on.
"""

import sys
from collections.abc import Iterator
from typing import Any, Final

from inferencecache.events.messages import BlockRemoved, BlockStored
from inferencecache.events.rank_orphans import Orphan, RankOrphans

_NEVER_NS: Final = sys.maxsize


class Orphans:
    """All waiting stores of one replica.

    Args:
        blocks_max: Most blocks held; the oldest stores make room.
        bytes_max: Most bytes of tokens and names held; the same.
        hold_ns: How long a store waits.

    Attributes:
        blocks_total: Blocks held.
        bytes_total: Bytes of their tokens and names.
    """

    def __init__(self, *, blocks_max: int, bytes_max: int, hold_ns: int) -> None:
        self._blocks_max = blocks_max
        self._bytes_max = bytes_max
        self._hold_ns = hold_ns
        self._ranks: dict[int, RankOrphans] = {}
        self._next_number = 0
        self._due_ns = _NEVER_NS
        self.blocks_total = 0
        self.bytes_total = 0

    def hold(self, rank: int, event: BlockStored, now_ns: int) -> int:
        """Keep *event* until its parent arrives; return how many blocks were dropped for it.

        Complexity:
            Constant per block of *event* and of what is dropped, and one look at each rank that
            has waiting stores for each store that is dropped.
        """
        blocks = len(event.block_hashes)
        orphan = Orphan(event=event, number=self._next_number, deadline_ns=now_ns + self._hold_ns)
        if blocks > self._blocks_max or orphan.size_bytes > self._bytes_max:
            return blocks
        self._next_number += 1
        self._ranks.setdefault(rank, RankOrphans()).add(orphan)
        self._due_ns = min(self._due_ns, orphan.deadline_ns)
        self.blocks_total += blocks
        self.bytes_total += orphan.size_bytes
        dropped = 0
        while self.blocks_total > self._blocks_max or self.bytes_total > self._bytes_max:
            dropped += self._drop(*self._oldest())
        return dropped

    def pop_child(self, rank: int, group_idx: int, engine_hash: int) -> Orphan | None:
        """Remove and return the oldest store that waits for a block, None if there is none."""
        waiting = self._ranks.get(rank)
        orphan = waiting.pop_child(group_idx, engine_hash) if waiting is not None else None
        if orphan is not None:
            self._let_go(rank, orphan)
        return orphan

    def note_removal(self, rank: int, event: BlockRemoved, engine_hash: int) -> bool:
        """Remember that a block left a medium; False if no waiting store has a copy to lose."""
        waiting = self._ranks.get(rank)
        return waiting is not None and waiting.note_removal(event, engine_hash)

    def expire(self, now_ns: int, blocks_max: int = sys.maxsize) -> int:
        """Drop what has waited too long; return how many blocks that was.

        Args:
            now_ns: The time.
            blocks_max: Blocks after which no other store is dropped; the next call goes on.
        """
        dropped = 0
        while self._due_ns <= now_ns and dropped < blocks_max:
            if not self._ranks:
                self._due_ns = _NEVER_NS
                break
            rank, oldest = self._oldest()
            self._due_ns = oldest.deadline_ns
            if self._due_ns <= now_ns:
                dropped += self._drop(rank, oldest)
        return dropped

    def blocks_of(self, rank: int) -> int:
        """Return how many blocks of *rank* wait."""
        waiting = self._ranks.get(rank)
        return 0 if waiting is None else waiting.blocks_total

    def clear(self, rank: int) -> Iterator[dict[Any, Any]]:
        """Forget everything of *rank* at once; return what to take apart in slices."""
        gone = self._ranks.pop(rank, None)
        if gone is None:
            return iter(())
        self.blocks_total -= gone.blocks_total
        self.bytes_total -= gone.bytes_total
        return gone.parts()

    def clear_all(self) -> Iterator[dict[Any, Any]]:
        """Forget everything at once; return what to take apart in slices."""
        for rank in list(self._ranks):
            yield from self.clear(rank)

    def _oldest(self) -> tuple[int, Orphan]:
        """Return the store that has waited longest, and its rank; there is one."""
        return min(
            ((rank, waiting.oldest) for rank, waiting in self._ranks.items()),
            key=lambda found: found[1].number,
        )

    def _drop(self, rank: int, orphan: Orphan) -> int:
        self._ranks[rank].forget(orphan)
        self._let_go(rank, orphan)
        return len(orphan.event.block_hashes)

    def _let_go(self, rank: int, orphan: Orphan) -> None:
        """Count what a rank no longer holds."""
        self.blocks_total -= len(orphan.event.block_hashes)
        self.bytes_total -= orphan.size_bytes
        if not self._ranks[rank]:
            del self._ranks[rank]
