"""The stores of one rank that wait for their parent, by what they wait for and by what may leave.

A rank's stores are apart from other ranks', so that forgetting a rank costs nothing at once.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from inferencecache.events.mediums import lane_of
from inferencecache.events.messages import BlockRemoved, BlockStored
from inferencecache.events.orphan_places import Copy, OrphanPlaces, Place

_CHARACTER_BYTES: Final = 4
"""Most that a character of a name takes."""


@dataclass(slots=True, eq=False)
class Orphan:
    """One store that waits.

    Attributes:
        event: The store.
        number: Its place among all stores that ever waited; the next one's is greater.
        deadline_ns: When it is given up.
        removals: Removals of its blocks seen meanwhile, to be applied after it is placed.
        size_bytes: Its tokens and names, the only things of any size about a block.
    """

    event: BlockStored
    number: int
    deadline_ns: int
    removals: list[BlockRemoved] = field(default_factory=list)
    size_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        event = self.event
        names = len(event.lora_name) + len(event.medium) + len(event.kv_cache_spec_kind)
        self.size_bytes = len(event.packed_tokens) + names * _CHARACTER_BYTES


class RankOrphans:
    """Waiting stores of one rank; none names a hash twice.

    Attributes:
        blocks_total: Blocks held.
        bytes_total: Bytes of their tokens and names.
    """

    __slots__ = ("_by_parent", "_queue", "_unremoved", "blocks_total", "bytes_total")

    def __init__(self) -> None:
        self._queue: OrderedDict[Orphan, None] = OrderedDict()
        self._by_parent: OrphanPlaces[Place, Orphan] = OrphanPlaces()
        self._unremoved: OrphanPlaces[Copy, Orphan] = OrphanPlaces()
        self.blocks_total = 0
        self.bytes_total = 0

    def __bool__(self) -> bool:
        return bool(self._queue)

    @property
    def oldest(self) -> Orphan:
        """The store that has waited longest; there is one."""
        return next(iter(self._queue))

    def add(self, orphan: Orphan) -> None:
        """Keep *orphan*, the youngest now."""
        self._queue[orphan] = None
        self._by_parent.add(_parent_place(orphan.event), orphan)
        for copy in _copies(orphan.event):
            self._unremoved.add(copy, orphan)
        self.blocks_total += len(orphan.event.block_hashes)
        self.bytes_total += orphan.size_bytes

    def pop_child(self, group_idx: int, engine_hash: int) -> Orphan | None:
        """Remove and return the oldest store that waits for a block, None if there is none."""
        orphan = self._by_parent.pop_oldest(Place(group_idx, engine_hash))
        if orphan is not None:
            self.forget(orphan)
        return orphan

    def note_removal(self, event: BlockRemoved, engine_hash: int) -> bool:
        """Remember that a block left a medium; False if no waiting store has a copy to lose."""
        # Removals apply to the oldest store that still has a copy left to lose.
        orphan = self._unremoved.pop_oldest(
            Copy(event.group_idx, engine_hash, lane_of(event.medium))
        )
        if orphan is None:
            return False
        orphan.removals.append(
            BlockRemoved(block_hashes=[engine_hash], medium=event.medium, group_idx=event.group_idx)
        )
        return True

    def forget(self, orphan: Orphan) -> None:
        """Keep *orphan* no longer."""
        del self._queue[orphan]
        self.blocks_total -= len(orphan.event.block_hashes)
        self.bytes_total -= orphan.size_bytes
        self._by_parent.discard(_parent_place(orphan.event), orphan)
        for copy in _copies(orphan.event):
            self._unremoved.discard(copy, orphan)

    def parts(self) -> Iterator[dict[Any, Any]]:
        """Yield the dictionaries it is made of; for one that is not used any more."""
        yield self._queue
        yield from self._by_parent.parts()
        yield from self._unremoved.parts()


def _parent_place(event: BlockStored) -> Place:
    assert event.parent_block_hash is not None, "a root waits for nobody"  # noqa: S101 - ours
    return Place(event.group_idx, event.parent_block_hash)


def _copies(event: BlockStored) -> list[Copy]:
    lane = lane_of(event.medium)
    return [Copy(event.group_idx, engine_hash, lane) for engine_hash in event.block_hashes]
