"""The partitioned in-memory prefix index; pure, synchronous, deterministic."""

from inferencecache.index.counters import EvictionReason, IndexCounters
from inferencecache.index.event import EventType, IndexEvent
from inferencecache.index.packed_hashes import PackedHashes
from inferencecache.index.prefix_index import PrefixIndex
from inferencecache.index.rules import TenantRules
from inferencecache.index.snapshot import CacheState, IndexSnapshot, ReplicaRow, TenantRow
from inferencecache.index.update import DropReason, StateUpdate, Stretch

__all__ = [
    "CacheState",
    "DropReason",
    "EventType",
    "EvictionReason",
    "IndexCounters",
    "IndexEvent",
    "IndexSnapshot",
    "PackedHashes",
    "PrefixIndex",
    "ReplicaRow",
    "StateUpdate",
    "Stretch",
    "TenantRow",
    "TenantRules",
]
