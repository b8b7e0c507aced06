"""Short ways to write engine events in tests."""

from collections.abc import Iterable

from held_index import HeldIndex

from inferencecache.events import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    Event,
    EventBatch,
    EventMapper,
)
from inferencecache.events.token_packing import pack_tokens
from inferencecache.fingerprint import prefix_hashes
from inferencecache.settings.producer import MapperSettings
from inferencecache.types import CacheTier

CLEARED = AllBlocksCleared()


def tokens(start: int, blocks: int, size: int = 16) -> list[int]:
    """Return the tokens of *blocks* blocks that count up from *start*."""
    return list(range(start, start + blocks * size))


def stored(
    hashes: list[int],
    token_ids: list[int],
    parent: int | None = None,
    size: int = 16,
    **more: object,
) -> BlockStored:
    """Return a store; every block is described by its tokens unless told otherwise."""
    fields = {"opaque_from": len(hashes), "medium": "GPU", **more}
    return BlockStored(
        block_hashes=hashes,
        parent_block_hash=parent,
        packed_tokens=pack_tokens(token_ids),
        block_size=size,
        **fields,  # type: ignore[arg-type]
    )


def moved(hashes: list[int], medium: str, **more: object) -> BlockStored:
    """Return a store without tokens, as connectors send it."""
    return stored(hashes, [], size=0, medium=medium, **more)


def removed(hashes: list[int], medium: str = "GPU", group_idx: int = 0) -> BlockRemoved:
    """Return a removal."""
    return BlockRemoved(block_hashes=hashes, medium=medium, group_idx=group_idx)


def batch_of(events: Iterable[Event], rank: int | None = None, ts_ns: int = 0) -> EventBatch:
    """Return a batch."""
    return EventBatch(timestamp_ns=ts_ns, rank=rank, events=list(events), faults={})


def keys(token_ids: list[int], adapter_id: str = "", index_size: int = 16) -> list[tuple[str, int]]:
    """Return the names of all keys of a prompt."""
    return [(adapter_id, key) for key in prefix_hashes(token_ids, index_size)]


class Producer:
    """A mapper with an index behind it that follows its operations one by one."""

    def __init__(self, **settings: object) -> None:
        self.settings = MapperSettings(**settings)  # type: ignore[arg-type]
        self.mapper = EventMapper(self.settings)
        self.index = HeldIndex(self.settings.block_size_tokens)

    def feed(self, *events: Event, rank: int | None = None, now_ns: int = 0) -> None:
        """Apply one batch and check that index and mapper agree."""
        self.index.apply(self.mapper.apply(batch_of(events, rank), now_ns))
        self.check()

    def check(self) -> None:
        """Compare what the index holds with what the mapper believes."""
        self.mapper.check_invariants()
        assert self.index.tiers() == self.mapper.held_keys()

    @property
    def held(self) -> dict[tuple[str, int], CacheTier]:
        """Keys in the index with their tiers."""
        return self.index.tiers()

    def drops(self) -> dict[str, int]:
        """Return the mapper's refusals by cause."""
        return {cause.value: times for cause, times in self.mapper.counters.drops.items()}
