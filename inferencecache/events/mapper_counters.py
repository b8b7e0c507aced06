"""What a mapper counts; every number ends up in a metric, none carries content."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

from inferencecache.events.mediums import UNKNOWN_LANE, lane_of
from inferencecache.events.messages import EventBatch

_Name = TypeVar("_Name")

_NAMED_MAX: Final = 64
_NAME_CHARS_MAX: Final = 128


class Drop(StrEnum):
    """Why a store put nothing into the index."""

    REMOTE = "remote"
    GROUP = "group"
    GROUPS = "groups"
    EMPTY = "empty"
    UNKNOWN_BLOCK = "unknown_block"
    ADAPTER = "adapter"
    ADAPTERS = "adapters"
    SELF_PARENT = "self_parent"
    REPEATED_HASH = "repeated_hash"
    BLOCK_SIZE = "block_size"
    PARTIAL_BLOCK = "partial_block"
    FOREIGN_CHUNK = "foreign_chunk"
    PARENT_ADAPTER = "parent_adapter"
    DEPTH = "depth"
    RANKS = "ranks"


@dataclass(slots=True)
class MapperCounters:
    """Totals since the start.

    Attributes:
        stored_blocks: Blocks announced by stores that were placed.
        removed_blocks: Copies taken away by removals.
        cleared: Clears, by the engine or after a restart.
        faults: Undecodable events, by cause.
        drops: Stores that put nothing into the index, by cause.
        unmapped_adapters: Dropped stores by adapter number, for the first few numbers.
        unnumbered_adapters: Dropped stores by adapter name, where the event has no number.
        refused_block_sizes: Stores by engine block size that does not fit the index's.
        smaller_block_sizes: Stores dropped because larger blocks were announced before, by their
            size and the larger one.
        opaque_blocks: Blocks whose content tokens do not describe.
        unknown_mediums: Events with a medium no release is known to send.
        unknown_removals: Removals of blocks or copies that are not held.
        orphaned_blocks: Blocks that arrived before their parent.
        orphans_resolved: Of these, placed later.
        orphans_dropped: Of these, given up.
        copies_saturated: Stores of a block whose copies are no longer counted.
        rebound_blocks: Engine hashes that came to mean other content.
        overflowed_blocks: Blocks withdrawn because too many were held.
        rank_mismatches: Batches whose rank is not the source's.
        clock_skews: Live batches whose time is far from ours.
    """

    stored_blocks: int = 0
    removed_blocks: int = 0
    cleared: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    drops: dict[Drop, int] = field(default_factory=dict)
    unmapped_adapters: dict[str, int] = field(default_factory=dict)
    unnumbered_adapters: dict[str, int] = field(default_factory=dict)
    refused_block_sizes: dict[int, int] = field(default_factory=dict)
    smaller_block_sizes: dict[tuple[int, int], int] = field(default_factory=dict)
    opaque_blocks: int = 0
    unknown_mediums: int = 0
    unknown_removals: int = 0
    orphaned_blocks: int = 0
    orphans_resolved: int = 0
    orphans_dropped: int = 0
    copies_saturated: int = 0
    rebound_blocks: int = 0
    overflowed_blocks: int = 0
    rank_mismatches: int = 0
    clock_skews: int = 0

    def drop(self, cause: Drop) -> None:
        """Count a store that is not indexed."""
        self.drops[cause] = self.drops.get(cause, 0) + 1

    def batch(self, batch: EventBatch, source_rank: int) -> None:
        """Count a batch's undecodable events, and a rank that is not its socket's."""
        for cause, times in batch.faults.items():
            self.faults[cause] = self.faults.get(cause, 0) + times
        if batch.rank is not None and batch.rank != source_rank and not batch.is_rest:
            self.rank_mismatches += 1

    def lane(self, medium: str) -> int:
        """Return the lane of a medium as engines name it, and count one that nobody knows."""
        lane = lane_of(medium)
        self.unknown_mediums += lane == UNKNOWN_LANE
        return lane

    def unmapped_adapter(self, lora_id: int | None, lora_name: str) -> bool:
        """Count a store of an adapter the map does not have; True the first time for it.

        Args:
            lora_id: Its number, None when the event has only a name.
            lora_name: Its name; counts only without a number, and of it only the beginning.
        """
        if lora_id is None:
            name = lora_name[:_NAME_CHARS_MAX]
            return _count_bounded(self.unnumbered_adapters, name, _NAMED_MAX)
        return _count_bounded(self.unmapped_adapters, str(lora_id), _NAMED_MAX)

    def refused_block_size(self, block_size: int) -> bool:
        """Count a store of a size that does not fit; True the first time for this size."""
        return _count_bounded(self.refused_block_sizes, block_size, _NAMED_MAX)

    def smaller_block_size(self, block_size: int, usual_size: int) -> bool:
        """Count a store of smaller blocks than usual; True the first time for these sizes."""
        return _count_bounded(self.smaller_block_sizes, (block_size, usual_size), _NAMED_MAX)


def _count_bounded(counts: dict[_Name, int], name: _Name, names_max: int) -> bool:
    is_new = name not in counts
    if not is_new or len(counts) < names_max:
        counts[name] = counts.get(name, 0) + 1
    return is_new and len(counts) <= names_max
