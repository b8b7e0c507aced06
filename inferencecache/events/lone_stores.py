"""Place stores of one plain block each, many in a row.

Some engines send an event per block. What such stores have in common, where they go and what is
counted, is then more work than the block itself, so it is done once for a row of them. ``placer``
does the same for a store of any kind.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from inferencecache.events.block_table import BlockTable
from inferencecache.events.blocks import Block, SharedCounts
from inferencecache.events.chunking import lone_key
from inferencecache.events.key_table import T1_HOLDER
from inferencecache.events.ledger import Ledger
from inferencecache.events.mapper_counters import MapperCounters
from inferencecache.events.mediums import GPU_TIER, NOWHERE
from inferencecache.events.messages import BlockStored, Event
from inferencecache.events.operations import Changes, StoreRun
from inferencecache.events.plain_run import PlainRun
from inferencecache.events.rank_space import Route, Signature, signature_of
from inferencecache.events.shards import SHARD_MASK
from inferencecache.events.stretch import STRETCH_BLOCKS, Stretch
from inferencecache.events.token_packing import TOKEN_BYTES
from inferencecache.types import INT32_MAX


class LoneStores:
    """Places stores of one block that is one index block.

    Args:
        ledger: Where blocks and keys are kept.
        index_size: Tokens per block of the index.
        counters: What happens is counted here.
    """

    def __init__(self, ledger: Ledger, index_size: int, counters: MapperCounters) -> None:
        self._ledger = ledger
        self._index_size = index_size
        self._tokens_max = INT32_MAX - index_size
        self._counters = counters
        self._counts = SharedCounts()

    def place(
        self, route: Route, events: Iterator[Event], signature: Signature, changes: Changes
    ) -> int:
        """Place stores up to the first that is not a new plain block; return how many.

        Args:
            route: Where they go.
            events: Events in order.
            signature: What makes a store go there; another one ends the row.
            changes: Where operations go.
        """
        placed, room, total = 0, 0, 0
        while placed == room:
            stretch = route[0].blocks.stretch(route[1])
            room = STRETCH_BLOCKS - len(stretch.engine_hashes)
            plain = self._plain(islice(events, room), signature)
            placed = self._fill(route[0].blocks, stretch, plain, changes)
            total += placed
        self._ledger.blocks_total += total
        self._counters.stored_blocks += total
        return total

    def _fill(
        self, table: BlockTable, stretch: Stretch, events: Iterable[BlockStored], changes: Changes
    ) -> int:
        """Place stores that all fit into *stretch*, up to the first that is not new and plain."""
        adapter_id, size = stretch.adapter_id, self._index_size
        share = self._counts.in_use().setdefault
        shards, held = table.shards, self._ledger.keys.partition(adapter_id)
        order, append = stretch.engine_hashes, changes.operations.append
        known = len(order)
        for event in events:
            engine_hash, parent_hash = event.block_hashes[0], event.parent_block_hash
            before, tokens = None, size
            if parent_hash is not None:
                parent = shards[parent_hash & SHARD_MASK].get(parent_hash)
                if type(parent) is PlainRun:
                    parent = table.get(parent_hash)
                if (
                    parent is None
                    or parent.detail is not None
                    or parent.stretch.adapter_id != adapter_id
                    or parent.tokens > self._tokens_max
                ):
                    break
                before, tokens = parent.chain, parent.tokens + size
            blocks = shards[engine_hash & SHARD_MASK]
            if engine_hash in blocks:
                break
            key = lone_key(event.packed_tokens, before)
            part = held[key & SHARD_MASK]
            holders = part.get(key)
            if holders is None:
                part[key] = T1_HOLDER
            else:
                self._ledger.keys.move(adapter_id, key, NOWHERE, GPU_TIER)
            tokens = share(tokens, tokens)
            blocks[engine_hash] = Block(key, tokens, stretch, 1, before, None)
            order.append(engine_hash)
            append(StoreRun(adapter_id, GPU_TIER, [key], before, tokens, holders is None))
        return len(order) - known

    def _plain(self, events: Iterable[Event], signature: Signature) -> Iterator[BlockStored]:
        """Yield stores of one block with *signature*, up to the first other event."""
        width = self._index_size * TOKEN_BYTES
        for event in events:
            if (
                type(event) is not BlockStored
                or signature_of(event) != signature
                or len(event.block_hashes) != 1
                or len(event.packed_tokens) != width
                or event.opaque_from != 1
            ):
                return
            yield event
