"""Put stores in their place: engine blocks become tracked blocks, and their keys operations.

The usual store, blocks that each are one index block, has a flat way of its own; everything else
goes through pieces. Both do the same, and so does ``lone_stores``.
"""

from collections.abc import Iterable

import msgspec

from inferencecache.events.block_group import BlockGroup
from inferencecache.events.blocks import Block, Detail, SharedCounts
from inferencecache.events.chunking import Piece, cut_multiples, cut_pages
from inferencecache.events.ledger import Ledger
from inferencecache.events.mapper_counters import MapperCounters
from inferencecache.events.mediums import GPU_LANE, GPU_TIER, HOST_TIER, NOWHERE, one_copy
from inferencecache.events.messages import BlockStored
from inferencecache.events.operations import Changes, StoreRun
from inferencecache.events.plain_run import PlainRun
from inferencecache.events.stretch import STRETCH_BLOCKS
from inferencecache.events.token_packing import TOKEN_BYTES
from inferencecache.fingerprint import packed_prefix_hashes

_OPAQUE = Detail(is_opaque=True)


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


class Placer:
    """Places stores of one replica.

    Args:
        ledger: Where blocks and keys are kept.
        index_size: Tokens per block of the index.
        counters: What happens is counted here.
    """

    def __init__(self, ledger: Ledger, index_size: int, counters: MapperCounters) -> None:
        self._ledger = ledger
        self._index_size = index_size
        self._counters = counters
        self._counts = SharedCounts()

    def store(self, placing: Placing, changes: Changes) -> None:
        """Place the blocks of a store, or count another copy of those already there.

        Complexity:
            Linear in blocks; about a microsecond each when they are new and hold one key.
        """
        event, parent = placing.event, placing.parent
        described = event.opaque_from
        if parent is not None and parent.is_opaque:
            described = 0
        if described:
            self._store_described(placing, described, changes)
        if described < len(event.block_hashes):
            self._store_opaque(placing, described, changes)
        self._counters.stored_blocks += len(event.block_hashes)

    def _store_described(self, placing: Placing, total: int, changes: Changes) -> None:
        event, parent, index_size = placing.event, placing.parent, self._index_size
        size = event.block_size
        packed = event.packed_tokens[: total * size * TOKEN_BYTES]
        chain = None if parent is None else parent.chain
        if size == index_size:
            self._store_equal(placing, packed_prefix_hashes(packed, size, chain), changes)
        elif size > index_size:
            pieces = cut_multiples(packed, size, index_size, chain)
            self._store_pieces(placing, pieces, changes)
        else:
            tail = b"" if parent is None else parent.tail
            pieces = cut_pages(packed, size, index_size, (chain, tail))
            self._store_pieces(placing, pieces, changes)

    def _store_equal(self, placing: Placing, keys: list[int], changes: Changes) -> None:
        """Place blocks that are one index block each: the usual case, so it is done in runs."""
        parent, table, size = placing.parent, placing.group.blocks, placing.event.block_size
        before, tokens = (None, 0) if parent is None else (parent.chain, parent.tokens)
        is_fresh = True
        for start in range(0, len(keys), STRETCH_BLOCKS):
            end = min(start + STRETCH_BLOCKS, len(keys))
            run = PlainRun(
                table.stretch(placing.adapter_id),
                tuple(placing.event.block_hashes[start:end]),
                tuple(keys[start:end]),
                before,
                tokens,
                size,
            )
            if placing.lane == GPU_LANE and table.add_run(run):
                self._ledger.blocks_total += len(run.keys)
                is_fresh &= self._ledger.keys.add(placing.adapter_id, run.keys)
            else:
                is_fresh &= self._store_each(placing, run, changes)
            before, tokens = run.keys[-1], tokens + size * len(run.keys)
        self._emit(placing, keys, is_fresh=is_fresh, changes=changes)

    def _store_each(self, placing: Placing, run: PlainRun, changes: Changes) -> bool:
        """Place the blocks of *run* one by one; True if no block and no key of it was held."""
        table, is_fresh = placing.group.blocks, True
        for position, key in enumerate(run.keys):
            engine_hash, block = run.engine_hashes[position], run.block(position)
            block.holding = one_copy(placing.lane)
            if engine_hash in table:
                self._store_again(placing, engine_hash, block, changes)
                is_fresh = False
            else:
                is_fresh &= self._ledger.keys.tier(placing.adapter_id, key) is NOWHERE
                self._ledger.insert(placing.group, engine_hash, block)
        return is_fresh

    def _store_pieces(self, placing: Placing, pieces: Iterable[Piece], changes: Changes) -> None:
        """Place blocks larger or smaller than the index's."""
        event, adapter_id, parent = placing.event, placing.adapter_id, placing.parent
        blocks, lane = placing.group.blocks, placing.lane
        tokens = 0 if parent is None else parent.tokens
        keys: list[int] = []
        previous, is_fresh = parent, True
        for engine_hash, piece in zip(event.block_hashes, pieces, strict=False):
            tokens = self._counts.share(tokens + event.block_size)
            block = Block(
                piece.chain,
                tokens,
                blocks.stretch(adapter_id),
                one_copy(lane),
                piece.parent_chain,
                piece.detail(),
            )
            if engine_hash in blocks:
                self._store_again(placing, engine_hash, block, changes)
                is_fresh = False
            else:
                is_fresh &= not any(self._ledger.keys.tier(adapter_id, key) for key in piece.keys)
                self._ledger.insert(placing.group, engine_hash, block)
            if previous is not None and previous.detail is not None and previous.detail.tail:
                previous.detail.add_child(engine_hash, blocks)
            previous = blocks.get(engine_hash)
            keys.extend(piece.keys)
        self._emit(placing, keys, is_fresh=is_fresh, changes=changes)

    def _store_opaque(self, placing: Placing, start: int, changes: Changes) -> None:
        event = placing.event
        for engine_hash in event.block_hashes[start:]:
            stretch = placing.group.blocks.stretch(placing.adapter_id)
            block = Block(None, 0, stretch, one_copy(placing.lane), None, _OPAQUE)
            if engine_hash in placing.group.blocks:
                self._store_again(placing, engine_hash, block, changes)
            else:
                self._ledger.insert(placing.group, engine_hash, block)
            self._counters.opaque_blocks += 1

    def _store_again(
        self, placing: Placing, engine_hash: int, fresh: Block, changes: Changes
    ) -> None:
        """Count another copy of a block, or replace it if its hash now means other content."""
        known = placing.group.blocks.get(engine_hash)
        if known is None or not _same_place(known, fresh):
            self._counters.rebound_blocks += 1
            self._ledger.drop(placing.group, engine_hash, changes)
            self._ledger.insert(placing.group, engine_hash, fresh)
            return
        self._ledger.add_copy(placing.group, engine_hash, placing.lane)

    def _emit(self, placing: Placing, keys: list[int], *, is_fresh: bool, changes: Changes) -> None:
        """Append the stored keys.

        Those held better than by this store are left alone, and so are those that a block of it
        took away again by replacing another.
        """
        parent, index_size = placing.parent, self._index_size
        tokens = 0 if parent is None else parent.tokens - len(parent.tail) // TOKEN_BYTES
        before = None if parent is None else parent.chain
        tier = GPU_TIER if placing.lane == GPU_LANE else HOST_TIER
        runs = [(0, len(keys))] if keys else []
        if not is_fresh:
            tier_at = self._ledger.keys.tier
            runs = _stretches([tier_at(placing.adapter_id, key) is tier for key in keys])
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
