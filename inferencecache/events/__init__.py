"""The pure core of an engine producer: payloads in, changes of the index out."""

from inferencecache.events.decode import decode_batch
from inferencecache.events.mapper import EventMapper
from inferencecache.events.messages import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    Event,
    EventBatch,
)
from inferencecache.events.operations import Clear, Evict, Operation, StoreRun

__all__ = [
    "AllBlocksCleared",
    "BlockRemoved",
    "BlockStored",
    "Clear",
    "Event",
    "EventBatch",
    "EventMapper",
    "Evict",
    "Operation",
    "StoreRun",
    "decode_batch",
]
