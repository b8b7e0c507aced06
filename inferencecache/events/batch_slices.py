"""Cut a batch into slices that are each taken in at one go.

One step of an engine may store a prompt of ten thousand blocks and more. Taking that in at once
would keep a loop from its sockets for too long; in slices, it is the same to whoever takes them in.
"""

from collections.abc import Iterator

import msgspec

from inferencecache.events.messages import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    Event,
    EventBatch,
)
from inferencecache.events.token_packing import TOKEN_BYTES


def batch_slices(batch: EventBatch, blocks_max: int) -> Iterator[EventBatch]:
    """Yield *batch* in slices of at most *blocks_max* blocks; whole if it has no more.

    A clear counts as a block. Faults come with the first slice, a doubt with each.

    Args:
        batch: What was decoded.
        blocks_max: Blocks per slice, >= 1.
    """
    if sum(map(_blocks_of, batch.events)) <= blocks_max:
        yield batch
        return
    gathered: list[Event] = []
    room, is_first, begun = blocks_max, True, 0
    for event in batch.events:
        for start, part in _parts(event, blocks_max):
            if gathered and _blocks_of(part) > room:
                yield _slice(batch, gathered, is_first=is_first, begun=begun)
                gathered, room, is_first, begun = [], blocks_max, False, 0
            if start and not gathered:
                begun = 1
            gathered.append(part)
            room -= _blocks_of(part)
    yield _slice(batch, gathered, is_first=is_first, begun=begun)


def _slice(batch: EventBatch, events: list[Event], *, is_first: bool, begun: int) -> EventBatch:
    return EventBatch(
        timestamp_ns=batch.timestamp_ns,
        rank=batch.rank,
        events=events,
        faults=batch.faults if is_first else {},
        may_hide_removals=batch.may_hide_removals,
        is_rest=not is_first,
        begun_events=begun,
    )


def _blocks_of(event: Event) -> int:
    if isinstance(event, BlockStored | BlockRemoved):
        return max(len(event.block_hashes), 1)
    return 1


def _parts(event: Event, blocks_max: int) -> Iterator[tuple[int, Event]]:
    """Yield *event*, or parts of it with the position of each one's first block."""
    total = _blocks_of(event)
    if total <= blocks_max or isinstance(event, AllBlocksCleared) or _is_faulty_as_a_whole(event):
        yield 0, event
        return
    for start in range(0, total, blocks_max):
        end = min(start + blocks_max, total)
        if isinstance(event, BlockStored):
            yield start, _store_part(event, start, end)
        else:
            yield start, msgspec.structs.replace(event, block_hashes=event.block_hashes[start:end])


def _is_faulty_as_a_whole(event: BlockStored | BlockRemoved) -> bool:
    """Tell whether a store repeats a hash or names one as its parent, which no part may show."""
    if not isinstance(event, BlockStored):
        return False
    hashes = set(event.block_hashes)
    return event.parent_block_hash in hashes or len(hashes) < len(event.block_hashes)


def _store_part(event: BlockStored, start: int, end: int) -> BlockStored:
    hashes, width = event.block_hashes, event.block_size * TOKEN_BYTES
    return msgspec.structs.replace(
        event,
        block_hashes=hashes[start:end],
        parent_block_hash=hashes[start - 1] if start else event.parent_block_hash,
        packed_tokens=event.packed_tokens[start * width : end * width],
        opaque_from=min(max(event.opaque_from - start, 0), end - start),
    )
