"""Blocks of one replica and the keys that follow from them.

Rules of this file
------------------
* A block holds its keys at its own tier from the moment it is placed until it is dropped; every
  change of a block's copies goes through here, so that keys and blocks cannot disagree.
* Operations come out for keys only: one that gains a better tier or loses one, appears or goes.
* Nothing here decides whether a store may be placed; ``admission`` did.
"""

from collections.abc import Iterable
from itertools import islice

import msgspec

from inferencecache.events.blocks import Block, BlockGroup, Detail, SharedCounts
from inferencecache.events.chunking import TOKEN_BYTES, Piece, cut_multiples, cut_pages, lone_key
from inferencecache.events.key_table import T1_HOLDER, T1_MASK, T2_HOLDER, KeyTable
from inferencecache.events.mapper_counters import MapperCounters
from inferencecache.events.mediums import (
    GPU_LANE,
    INFERRED_LANE,
    NOWHERE,
    copies_in,
    one_copy,
    tier_of,
    with_copy,
    without_copy,
    without_lane,
)
from inferencecache.events.messages import BlockStored
from inferencecache.events.operations import Changes, StoreRun
from inferencecache.fingerprint import prefix_hashes
from inferencecache.settings.producer import MapperSettings
from inferencecache.types import CacheTier

_OPAQUE = Detail(is_opaque=True)
_OVERFLOW_SHARE = 256


class Placing(msgspec.Struct, frozen=True, gc=False):
    """A store that may be placed.

    Attributes:
        group: Where its blocks go.
        event: The store.
        adapter_id: Partition of the index.
        lane: Medium, see ``mediums``.
        parent: The block before the first, None at a prompt's start.
    """

    group: BlockGroup
    event: BlockStored
    adapter_id: str
    lane: int
    parent: Block | None


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
        self._counts = SharedCounts()
        self._inferred: dict[tuple[BlockGroup, int], None] = {}

    # ------------------------------------------------------------------ stores

    def store(self, placing: Placing, changes: Changes) -> None:
        """Place the blocks of a store, or count another copy of those already there.

        Complexity:
            Linear in blocks; about a microsecond each when they are new and hold one key.
        """
        event, parent = placing.event, placing.parent
        described = event.opaque_from
        if len(event.block_hashes) == described == 1 and self._store_lone(placing, changes):
            return
        if parent is not None and parent.is_opaque:
            described = 0
        if described:
            self._store_described(placing, described, changes)
        if described < len(event.block_hashes):
            self._store_opaque(placing, described, changes)
        self._counters.stored_blocks += len(event.block_hashes)

    def _store_lone(self, placing: Placing, changes: Changes) -> bool:
        """Place one new block that is one index block; False if it is anything else.

        The general way does the same; its set-up costs more than the work for a single block.
        """
        blocks, event, parent = placing.group.blocks, placing.event, placing.parent
        size, engine_hash, adapter_id = event.block_size, event.block_hashes[0], placing.adapter_id
        if size != self._index_size or placing.lane != GPU_LANE or engine_hash in blocks:
            return False
        if parent is not None and parent.detail is not None and parent.detail.is_opaque:
            return False
        before, tokens = (None, size) if parent is None else (parent.chain, parent.tokens + size)
        own = event.token_ids
        key = lone_key(own if len(own) == size else own[:size], before)
        held = self.keys.partition(adapter_id)
        holders = held.get(key, 0)
        held[key] = holders + T1_HOLDER
        tokens = self._counts.share(tokens)
        blocks[engine_hash] = Block(key, tokens, adapter_id, 1, before, None)
        self.blocks_total += 1
        self._counters.stored_blocks += 1
        changes.operations.append(
            StoreRun(
                adapter_id=adapter_id,
                tier=CacheTier.T1,
                keys=[key],
                parent_key=before,
                first_token_count=tokens,
                is_fresh=not holders,
            )
        )
        return True

    def _store_described(self, placing: Placing, total: int, changes: Changes) -> None:
        event, parent, index_size = placing.event, placing.parent, self._index_size
        size = event.block_size
        tokens = event.token_ids
        if len(tokens) > total * size:
            tokens = tokens[: total * size]
        chain = None if parent is None else parent.chain
        if size == index_size:
            self._store_equal(placing, prefix_hashes(tokens, size, chain), changes)
        elif size > index_size:
            pieces = cut_multiples(tokens, size, index_size, chain)
            self._store_pieces(placing, pieces, changes)
        else:
            tail = b"" if parent is None else parent.tail
            pieces = cut_pages(tokens, size, index_size, (chain, tail))
            self._store_pieces(placing, pieces, changes)

    def _store_equal(self, placing: Placing, keys: list[int], changes: Changes) -> None:
        """Place blocks that are one index block each: the usual case, so it is written flat."""
        event, adapter_id, lane, parent = (
            placing.event,
            placing.adapter_id,
            placing.lane,
            placing.parent,
        )
        blocks, held = placing.group.blocks, self.keys.partition(adapter_id)
        before, start = (None, 0) if parent is None else (parent.chain, parent.tokens)
        counts = self._counts.run(start, event.block_size, len(keys))
        lone, weight = one_copy(lane), _weight_of(lane)
        known = len(blocks)
        is_fresh = True
        for engine_hash, key, tokens in zip(event.block_hashes, keys, counts, strict=False):
            if engine_hash in blocks:
                block = Block(key, tokens, adapter_id, lone, before, None)
                self._store_again(placing, engine_hash, block, changes)
                is_fresh = False
            else:
                blocks[engine_hash] = Block(key, tokens, adapter_id, lone, before, None)
                holders = held.get(key, 0)
                held[key] = holders + weight
                if holders:
                    is_fresh = False
            before = key
        self.blocks_total += len(blocks) - known
        self._emit(placing, keys, is_fresh=is_fresh, changes=changes)

    def _store_pieces(self, placing: Placing, pieces: Iterable[Piece], changes: Changes) -> None:
        """Place blocks larger or smaller than the index's."""
        event, adapter_id, parent = placing.event, placing.adapter_id, placing.parent
        blocks, lane = placing.group.blocks, placing.lane
        tokens = 0 if parent is None else parent.tokens
        keys: list[int] = []
        previous, is_fresh = parent, True
        for engine_hash, piece in zip(event.block_hashes, pieces, strict=False):
            tokens = self._counts.run(tokens, event.block_size, 1)[0]
            block = Block(
                piece.chain, tokens, adapter_id, one_copy(lane), piece.parent_chain, piece.detail()
            )
            if engine_hash in blocks:
                self._store_again(placing, engine_hash, block, changes)
                is_fresh = False
            else:
                is_fresh &= not any(self.keys.tier(adapter_id, key) for key in piece.keys)
                self._insert(placing.group, engine_hash, block)
            if previous is not None and previous.detail is not None and previous.detail.tail:
                previous.detail.add_child(engine_hash)
            previous = blocks[engine_hash]
            keys.extend(piece.keys)
        self._emit(placing, keys, is_fresh=is_fresh, changes=changes)

    def _store_opaque(self, placing: Placing, start: int, changes: Changes) -> None:
        event = placing.event
        for engine_hash in event.block_hashes[start:]:
            block = Block(None, 0, placing.adapter_id, one_copy(placing.lane), None, _OPAQUE)
            if engine_hash in placing.group.blocks:
                self._store_again(placing, engine_hash, block, changes)
            else:
                self._insert(placing.group, engine_hash, block)
            self._counters.opaque_blocks += 1

    def _store_again(
        self, placing: Placing, engine_hash: int, fresh: Block, changes: Changes
    ) -> None:
        """Count another copy of a block, or replace it if its hash now means other content."""
        known = placing.group.blocks[engine_hash]
        if not _same_place(known, fresh):
            self._counters.rebound_blocks += 1
            self._drop(placing.group, engine_hash, changes)
            self._insert(placing.group, engine_hash, fresh)
            return
        self.add_copy(placing.group, engine_hash, placing.lane)

    def add_copy(
        self, group: BlockGroup, engine_hash: int, lane: int
    ) -> tuple[CacheTier, CacheTier]:
        """Count a copy of a held block in *lane*; return the block's tiers before and after.

        Keys follow; operations are the caller's.
        """
        block = group.blocks[engine_hash]
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
        self._emit_block(block, changes)

    def _insert(self, group: BlockGroup, engine_hash: int, block: Block) -> None:
        group.blocks[engine_hash] = block
        self.blocks_total += 1
        tier = block.tier
        for key in block.keys:
            self.keys.move(block.adapter_id, key, NOWHERE, tier)

    def _emit(self, placing: Placing, keys: list[int], *, is_fresh: bool, changes: Changes) -> None:
        """Append the stored keys; those held better than by this store are left alone."""
        parent, index_size = placing.parent, self._index_size
        tokens = 0 if parent is None else parent.tokens - len(parent.tail) // TOKEN_BYTES
        before = None if parent is None else parent.chain
        if placing.lane == GPU_LANE:
            tier, runs = CacheTier.T1, [(0, len(keys))] if keys else []
        else:
            held = self.keys.partition(placing.adapter_id)
            tier, runs = CacheTier.T2, _stretches([not held.get(key, 0) & T1_MASK for key in keys])
        for start, end in runs:
            changes.store(
                StoreRun(
                    adapter_id=placing.adapter_id,
                    tier=tier,
                    keys=keys[start:end] if end - start < len(keys) else keys,
                    parent_key=keys[start - 1] if start else before,
                    first_token_count=tokens + (start + 1) * index_size,
                    is_fresh=is_fresh,
                )
            )

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
        holding = without_copy(block.holding, lane)
        if not holding and infer and lane == GPU_LANE and not block.is_opaque:
            holding = one_copy(INFERRED_LANE)
            self._inferred[group, engine_hash] = None
        if not holding:
            self._drop(group, engine_hash, changes)
            return True
        before, after = block.tier, tier_of(holding)
        block.holding = holding
        if before != after:
            self._move_keys(block, before, after, changes)
        return True

    def _drop(self, group: BlockGroup, engine_hash: int, changes: Changes) -> None:
        """Forget a block, and with it those whose first index block it was part of."""
        waiting = [engine_hash]
        while waiting:
            current = waiting.pop()
            block = group.blocks.pop(current, None)
            if block is None:
                continue
            self._inferred.pop((group, current), None)
            self.blocks_total -= 1
            before, block.holding = block.tier, 0
            self._move_keys(block, before, NOWHERE, changes)
            if block.detail is not None:
                waiting.extend(block.detail.all_children())

    def _move_keys(
        self, block: Block, before: CacheTier, after: CacheTier, changes: Changes
    ) -> None:
        for position, key in enumerate(block.keys):
            old, new = self.keys.move(block.adapter_id, key, before, after)
            if new == NOWHERE:
                self._evict(block, position, changes)
            elif new != old:
                changes.store(self._single(block, position, block.adapter_id, new))

    def _evict(self, block: Block, position: int, changes: Changes) -> None:
        """Evict a key; the index takes a base key for every adapter's, so others are put back."""
        key = block.keys[position]
        changes.evict(block.adapter_id, key)
        if block.adapter_id:
            return
        for adapter_id in self.keys.other_adapters(block.adapter_id, key):
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

    def _emit_block(self, block: Block, changes: Changes) -> None:
        for position, key in enumerate(block.keys):
            tier = self.keys.tier(block.adapter_id, key)
            changes.store(self._single(block, position, block.adapter_id, tier))

    # ------------------------------------------------------------------ bounds

    def drop_group(self, group: BlockGroup, changes: Changes) -> None:
        """Withdraw every block of *group*."""
        for engine_hash in list(group.blocks):
            self._drop(group, engine_hash, changes)

    def forget_all(self) -> None:
        """Forget every block and key without saying so; the caller clears the replica."""
        self.keys.clear()
        self._inferred.clear()
        self.blocks_total = 0

    def trim(self, groups: Iterable[BlockGroup], changes: Changes) -> None:
        """Withdraw the oldest blocks of the largest group while there are too many.

        A slice goes at once: the front of a dict is slow to reach again and again.
        """
        blocks_max = self._settings.blocks_max
        while self.blocks_total > blocks_max:
            largest = max(groups, key=lambda group: len(group.blocks))
            excess = self.blocks_total - blocks_max + blocks_max // _OVERFLOW_SHARE
            oldest = list(islice(largest.blocks, max(1, excess)))
            self._counters.overflowed_blocks += len(oldest)
            for engine_hash in oldest:
                self._drop(largest, engine_hash, changes)

    def trim_inferred(self, changes: Changes) -> None:
        """Withdraw the blocks longest assumed to be offloaded while there are too many."""
        inferred_max = self._settings.offloaded_blocks_max
        excess = len(self._inferred) - inferred_max
        if excess <= 0:
            return
        for group, engine_hash in list(
            islice(self._inferred, excess + inferred_max // _OVERFLOW_SHARE)
        ):
            self._drop(group, engine_hash, changes)


def _weight_of(lane: int) -> int:
    return T1_HOLDER if lane == GPU_LANE else T2_HOLDER


def _same_place(known: Block, fresh: Block) -> bool:
    return (
        known.chain == fresh.chain
        and known.tokens == fresh.tokens
        and known.adapter_id == fresh.adapter_id
        and known.is_opaque == fresh.is_opaque
        and known.tail == fresh.tail
    )


def _stretches(wanted: list[bool]) -> list[tuple[int, int]]:
    """Return the half-open ranges in which *wanted* is true."""
    ranges: list[tuple[int, int]] = []
    start = None
    for position, is_wanted in enumerate([*wanted, False]):
        if is_wanted and start is None:
            start = position
        elif not is_wanted and start is not None:
            ranges.append((start, position))
            start = None
    return ranges
