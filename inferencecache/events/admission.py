"""Whether a store may be placed, and where; every refusal has a cause that is counted."""

from dataclasses import dataclass
from typing import Final

from inferencecache.events.adapters import AdapterNames
from inferencecache.events.block_group import BlockGroup
from inferencecache.events.chunking import fits
from inferencecache.events.key_table import KeyTable
from inferencecache.events.mapper_counters import Drop, MapperCounters
from inferencecache.events.mediums import GPU_LANE
from inferencecache.events.messages import BlockStored
from inferencecache.events.placer import Placing
from inferencecache.types import INT32_MAX

PREFIX_KINDS: Final = frozenset({"full_attention", "mla_attention", "sink_full_attention"})
"""Kinds of attention whose blocks are reusable as a prompt's leading part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The rules a store has to pass.

    Attributes:
        index_size: Tokens per block of the index.
        adapters: Names of adapters.
        counters: Where refusals are counted.
        keys: Where the partitions are.
        adapters_max: Most of them.
    """

    index_size: int
    adapters: AdapterNames
    counters: MapperCounters
    keys: KeyTable
    adapters_max: int

    def adapter_of(self, event: BlockStored) -> str | None:
        """Return the partition of *event*.

        Returns:
            None, counted, when its adapter has no known name or is one too many.
        """
        adapter_id = self.adapters.resolve(event.lora_id, event.lora_name)
        if adapter_id is None:
            self.counters.unmapped_adapter(event.lora_id, event.lora_name)
            self.counters.drop(Drop.ADAPTER)
        elif not self.keys.has_room_for(adapter_id, self.adapters_max):
            self.counters.drop(Drop.ADAPTERS)
            return None
        return adapter_id

    def size_fault(self, event: BlockStored, group: BlockGroup, lane: int) -> Drop | None:
        """Judge the block size and learn what is usual in *group*.

        Only the GPU's blocks define a group's size: other stores may come from a connector that
        hashes chunks of its own, whose labels no removal will ever name. The largest size counts,
        since unfinished blocks are announced as smaller ones.
        """
        size = event.block_size
        if size % self.index_size and self.index_size % size:
            self.counters.refused_block_size(size)
            return Drop.BLOCK_SIZE
        if lane != GPU_LANE:
            return None if size == group.block_size else Drop.FOREIGN_CHUNK
        if size < group.block_size:
            self.counters.smaller_block_size(size, group.block_size)
            return Drop.PARTIAL_BLOCK
        group.block_size = size
        return None

    def parent_fault(self, placing: Placing) -> Drop | None:
        """Judge how a store joins its parent."""
        parent, event = placing.parent, placing.event
        start = 0
        if parent is not None:
            if parent.adapter_id != placing.adapter_id:
                return Drop.PARENT_ADAPTER
            start, detail = parent.tokens, parent.detail
            if detail is not None and not fits(event.block_size, self.index_size, detail.tail):
                return Drop.BLOCK_SIZE
        if start + len(event.block_hashes) * event.block_size > INT32_MAX:
            return Drop.DEPTH
        return None


def is_prefix_group(kind: str, group_idx: int, *, known: bool | None) -> bool:
    """Tell whether blocks of a group make up prompts' leading parts.

    Args:
        kind: Attention kind the event names, empty for none.
        group_idx: The group.
        known: What an earlier event of the group said, None if nothing.
    """
    if kind:
        return kind in PREFIX_KINDS
    return group_idx == 0 if known is None else known
