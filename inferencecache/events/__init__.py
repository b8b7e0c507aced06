"""The pure core of an engine producer: payloads in, changes of the index out.

The way of a message: ``frames`` takes it apart, ``sequence`` puts it in order, ``decode`` reads it,
``mapper`` (or ``rank_router``, for several ranks) turns it into operations, and one ``outbox`` per
server holds them until they are delivered. ``engine_metrics`` reads the engine's load.
"""

from inferencecache.events.batch_slices import batch_slices
from inferencecache.events.decode import decode_batch
from inferencecache.events.frames import Frame, live_frame, replay_frame, replay_request
from inferencecache.events.mapper import EventMapper
from inferencecache.events.messages import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    Event,
    EventBatch,
)
from inferencecache.events.operations import Clear, Evict, Operation, StoreRun
from inferencecache.events.outbox import ChainEntry, Delivery, Eviction, Outbox
from inferencecache.events.rank_router import RankRouter
from inferencecache.events.sequence import SequenceTracker
from inferencecache.events.sequence_commands import (
    Apply,
    Command,
    Doubt,
    RequestReplay,
    Reset,
    ResetReason,
    SyncState,
)

__all__ = [
    "AllBlocksCleared",
    "Apply",
    "BlockRemoved",
    "BlockStored",
    "ChainEntry",
    "Clear",
    "Command",
    "Delivery",
    "Doubt",
    "Event",
    "EventBatch",
    "EventMapper",
    "Evict",
    "Eviction",
    "Frame",
    "Operation",
    "Outbox",
    "RankRouter",
    "RequestReplay",
    "Reset",
    "ResetReason",
    "SequenceTracker",
    "StoreRun",
    "SyncState",
    "batch_slices",
    "decode_batch",
    "live_frame",
    "replay_frame",
    "replay_request",
]
