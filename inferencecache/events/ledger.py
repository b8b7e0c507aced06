"""Blocks of one replica and the keys that follow from them.

Rules of this file
------------------
* A block holds its keys at its own tier from the moment it is placed until it is dropped; every
  change of a block's copies goes through here, so that keys and blocks cannot disagree. Only the
  flat loops of ``placer`` enter new blocks and their keys themselves.
* Operations come out for keys only: one that gains a better tier or loses one, appears or goes.
"""

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any

from inferencecache.events.block_group import BlockGroup
from inferencecache.events.block_table import BlockTable
from inferencecache.events.blocks import Block
from inferencecache.events.key_table import KeyTable
from inferencecache.events.mapper_counters import Drop, MapperCounters
from inferencecache.events.mediums import (
    GPU_LANE,
    HOST_TIER,
    INFERRED_LANE,
    NOWHERE,
    copies_in,
    one_copy,
    tier_of,
    with_copy,
    without_lane,
)
from inferencecache.events.messages import BlockStored
from inferencecache.events.operations import Changes, StoreRun
from inferencecache.events.token_packing import TOKEN_BYTES
from inferencecache.settings.producer import MapperSettings
from inferencecache.types import CacheTier

_OVERFLOW_SHARE = 1_024


class Ledger:
    """All blocks and keys of one replica.

    Attributes:
        keys: The key table; read only from outside.
        blocks_total: Blocks held.
    """

    def __init__(self, settings: MapperSettings, counters: MapperCounters) -> None:
        self.keys = KeyTable()
        self.blocks_total = 0
        self._settings = settings
        self._index_size = settings.block_size_tokens
        self._counters = counters
        self._inferred: dict[tuple[BlockGroup, int], None] = {}
        self._gone: list[tuple[dict[int, Any], int]] = []
        self._leaving: deque[BlockGroup] = deque()

    # ------------------------------------------------------------------ additions

    def add_copy(
        self, group: BlockGroup, engine_hash: int, lane: int
    ) -> tuple[CacheTier, CacheTier]:
        """Count a copy of a held block in *lane*; return the block's tiers before and after.

        Keys follow; operations are the caller's.
        """
        block = group.blocks.get(engine_hash)
        assert block is not None, "only a held block has copies"  # noqa: S101 - ours
        before = block.tier
        if copies_in(block.holding, INFERRED_LANE):
            self._inferred.pop((group, engine_hash), None)
        holding = with_copy(
            without_lane(block.holding, INFERRED_LANE), lane, self._settings.copies_max
        )
        if holding == block.holding:
            self._counters.copies_saturated += 1
        block.holding = holding
        after = block.tier
        if before != after:
            for key in block.keys:
                self.keys.move(block.adapter_id, key, before, after)
        return before, after

    def announce(self, block: Block, changes: Changes) -> None:
        """Append the keys of one block at their present tier."""
        for position, key in enumerate(block.keys):
            tier = self.keys.tier(block.adapter_id, key)
            changes.store(self._single(block, position, block.adapter_id, tier))

    def copy_known(
        self, group: BlockGroup, event: BlockStored, lane: int, changes: Changes
    ) -> None:
        """Count copies of blocks that are announced by their hashes alone."""
        for engine_hash in event.block_hashes:
            block = group.blocks.get(engine_hash)
            if block is None:
                self._counters.drop(Drop.UNKNOWN_BLOCK)
                continue
            before, after = self.add_copy(group, engine_hash, lane)
            if before != after:
                self.announce(block, changes)

    def insert(self, group: BlockGroup, engine_hash: int, block: Block) -> None:
        """Remember a block that is not held, and its keys; operations are the caller's."""
        group.blocks.insert(engine_hash, block)
        self.blocks_total += 1
        tier = block.tier
        for key in block.keys:
            self.keys.move(block.adapter_id, key, NOWHERE, tier)

    def check_invariants(self, groups: Iterable[BlockGroup]) -> None:
        """Raise AssertionError if blocks, keys and totals disagree; linear in blocks."""
        groups = [*groups, *self._leaving]
        assumed = {
            (group, engine_hash)
            for group in groups
            for engine_hash, block in group.blocks.items()
            if copies_in(block.holding, INFERRED_LANE)
        }
        assert assumed == self._inferred.keys(), "blocks assumed to be offloaded"  # noqa: S101 - ours
        tables = [group.blocks for group in groups]
        for table in tables:
            table.check_invariants()
        blocks = [block for table in tables for block in table.values()]
        held: dict[tuple[str, int], CacheTier] = {}
        for block in blocks:
            assert block.holding > 0, "a block without a copy is held"  # noqa: S101 - ours
            for key in block.keys:
                name = (block.adapter_id, key)
                held[name] = min(block.tier, held.get(name, block.tier))
        assert len(blocks) == self.blocks_total, "blocks over all groups"  # noqa: S101 - ours
        assert held == self.keys.held(), "keys over all blocks"  # noqa: S101 - ours
        t2_total = sum(tier is HOST_TIER for tier in held.values())
        assert t2_total == self.keys.t2_total, "keys at T2"  # noqa: S101 - ours

    # ------------------------------------------------------------------ removals

    def remove(
        self, group: BlockGroup, engine_hash: int, lane: int, *, infer: bool, changes: Changes
    ) -> bool:
        """Take one copy of a block away; False if no such copy is held.

        Args:
            group: Group of the block.
            engine_hash: Its label.
            lane: Medium it left.
            infer: Whether a block that leaves the GPU is taken to lie in a silent offload tier.
            changes: Where operations go.
        """
        block = group.blocks.get(engine_hash)
        if block is None or not copies_in(block.holding, lane):
            return False
        holding = block.holding - one_copy(lane)
        if not holding and infer and lane == GPU_LANE and not block.is_opaque:
            holding = one_copy(INFERRED_LANE)
            self._inferred[group, engine_hash] = None
        if not holding:
            self.drop(group, engine_hash, changes)
            return True
        before, after = block.tier, tier_of(holding)
        block.holding = holding
        if before != after:
            self._move_keys(block, before, after, changes)
        return True

    def drop(self, group: BlockGroup, engine_hash: int, changes: Changes) -> None:
        """Forget a block, and with it those whose first index block it was part of."""
        waiting = [engine_hash]
        while waiting:
            current = waiting.pop()
            block = group.blocks.pop(current)
            if block is None:
                continue
            if self._inferred:
                self._inferred.pop((group, current), None)
            self.blocks_total -= 1
            before, block.holding = block.tier, 0
            self._move_keys(block, before, NOWHERE, changes)
            if block.detail is not None:
                waiting.extend(block.detail.all_children())

    def _move_keys(
        self, block: Block, before: CacheTier, after: CacheTier, changes: Changes
    ) -> None:
        adapter_id = block.stretch.adapter_id
        for position, key in enumerate(block.keys):
            old, new = self.keys.move(adapter_id, key, before, after)
            if new is NOWHERE:
                changes.evict(adapter_id, key)
                if not adapter_id:
                    self._put_back(block, position, changes)
            elif new is not old:
                changes.store(self._single(block, position, adapter_id, new))

    def _put_back(self, block: Block, position: int, changes: Changes) -> None:
        """Store an evicted base key of other adapters again, since the index takes it for all."""
        key = block.keys[position]
        for adapter_id in self.keys.other_adapters("", key):
            tier = self.keys.tier(adapter_id, key)
            changes.store(self._single(block, position, adapter_id, tier))

    def _single(self, block: Block, position: int, adapter_id: str, tier: CacheTier) -> StoreRun:
        keys = block.keys
        return StoreRun(
            adapter_id=adapter_id,
            tier=tier,
            keys=[keys[position]],
            parent_key=keys[position - 1] if position else block.parent_chain,
            first_token_count=self._count_at(block, position),
            is_fresh=False,
        )

    def _count_at(self, block: Block, position: int) -> int:
        """Return the tokens from the prompt's start to the end of one of the block's keys."""
        boundary = block.tokens - len(block.tail) // TOKEN_BYTES
        return boundary - (len(block.keys) - 1 - position) * self._index_size

    # ------------------------------------------------------------------ bounds

    @property
    def is_leaving(self) -> bool:
        """Whether there are blocks to withdraw of groups that left."""
        return bool(self._leaving)

    def leave(self, group: BlockGroup) -> None:
        """Let :meth:`withdraw` take away every block of *group*, to which nobody adds any more."""
        self._leaving.append(group)

    def withdraw(self, blocks_max: int, changes: Changes) -> None:
        """Withdraw about *blocks_max* blocks of groups that left."""
        while self._leaving and blocks_max > 0:
            group = self._leaving[0]
            oldest = group.blocks.first(blocks_max)
            for engine_hash in oldest:
                self.drop(group, engine_hash, changes)
            blocks_max -= len(oldest)
            if not group.blocks:
                self._leaving.popleft()

    def forget_all(self, groups: Iterable[BlockGroup]) -> None:
        """Forget every block and key without saying so; the caller clears the replica.

        Freeing a million objects takes long, so they are only set aside here.
        """
        self.set_aside(self.keys.detach())
        for group in [*groups, *self._leaving]:
            self._gone.extend(group.blocks.parts())
            group.blocks = BlockTable()
        self._leaving.clear()
        self._inferred = {}
        self.blocks_total = 0

    def set_aside(self, parts: Iterable[dict[Any, Any]]) -> None:
        """Let :meth:`reclaim` free *parts*, which nobody uses any more."""
        self._gone.extend((part, 1) for part in parts if part)

    def reclaim(self, entries_max: int) -> bool:
        """Free at most *entries_max* of the things set aside; True if some are left."""
        while self._gone and entries_max > 0:
            last, cost = self._gone[-1]
            for _ in range(min(-(-entries_max // cost), len(last))):
                last.popitem()
                entries_max -= cost
            if not last:
                self._gone.pop()
        return bool(self._gone)

    def trim(self, groups: Iterable[BlockGroup], changes: Changes) -> None:
        """Withdraw the oldest blocks of the largest group while there are too many.

        A slice goes at once, since it takes a look at every group to find the largest.
        """
        blocks_max = self._settings.blocks_max
        groups = [*groups, *self._leaving] if self.blocks_total > blocks_max else ()
        while self.blocks_total > blocks_max:
            largest = max(groups, key=lambda group: len(group.blocks))
            excess = self.blocks_total - blocks_max + blocks_max // _OVERFLOW_SHARE
            oldest = largest.blocks.first(max(1, excess))
            self._counters.overflowed_blocks += len(oldest)
            for engine_hash in oldest:
                self.drop(largest, engine_hash, changes)

    def trim_inferred(self, changes: Changes) -> None:
        """Withdraw the blocks longest assumed to be offloaded while there are too many."""
        inferred_max = self._settings.offloaded_blocks_max
        excess = len(self._inferred) - inferred_max
        if excess <= 0:
            return
        for group, engine_hash in list(
            islice(self._inferred, excess + inferred_max // _OVERFLOW_SHARE)
        ):
            self.drop(group, engine_hash, changes)
