"""Events and the answers of GetCacheState between protobuf and the core's values."""

from collections.abc import Generator
from typing import Final

from inferencecache.clock import NS_PER_US
from inferencecache.index import CacheState, EventType, IndexEvent
from inferencecache.types import StatsRecord
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

_EVENT_TYPES: Final = {
    pb.CacheEvent.PREFIX_EVICTED: EventType.PREFIX_EVICTED,
    pb.CacheEvent.REPLICA_UPDATED: EventType.REPLICA_UPDATED,
    pb.CacheEvent.ALL_CLEARED: EventType.ALL_CLEARED,
}
"""Types that change the index; additions come through reports only, as events name no scheme."""

_SLICE_RECORDS: Final = 512
"""Records written before the loop gets its turn."""

_TYPE_NAMES: Final = {value.number: value.name for value in pb.CacheEvent.Type.DESCRIPTOR.values}


def event_type_name(message: pb.CacheEvent) -> str:
    """Return the wire name of the event's type; unknown numbers count as unspecified."""
    return _TYPE_NAMES.get(message.type, _TYPE_NAMES[pb.CacheEvent.TYPE_UNSPECIFIED])


def index_event(message: pb.CacheEvent) -> IndexEvent | None:
    """Return what *message* changes, or None where it changes nothing."""
    kind = _EVENT_TYPES.get(message.type)
    if kind is None:
        return None
    return IndexEvent(
        type=kind,
        tenant_id=message.tenant_id,
        model_id=message.model_id,
        replica_id=message.replica_id,
        prefix_hash=message.prefix_hash,
        timestamp_ns=message.timestamp_us * NS_PER_US,
        adapter_id=message.adapter_id,
    )


class WrittenState:
    """A ``GetCacheStateResponse`` that has been serialised.

    Args:
        data: The message.
    """

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def SerializeToString(self) -> bytes:  # noqa: N802 - what messages call it
        """Return the message as bytes."""
        return self._data


def state_response_steps(state: CacheState) -> Generator[None, None, WrittenState]:
    """Return *state* as a message, yielding between bounded slices.

    The summary is always present. What is serialised apart and put one behind the other is one
    message.

    Args:
        state: What is known of one (tenant, model).
    """
    message = pb.GetCacheStateResponse()
    message.summary.total_prefixes = state.total_prefixes
    message.summary.SetInParent()
    parts = [message.SerializeToString()]
    for start in range(0, len(state.replicas), _SLICE_RECORDS):
        records = state.replicas[start : start + _SLICE_RECORDS]
        stats = map(_replica_stats, records)
        parts.append(pb.GetCacheStateResponse(replicas=stats).SerializeToString())
        yield
    return WrittenState(b"".join(parts))


def _replica_stats(record: StatsRecord) -> pb.ReplicaStats:
    stats = record.stats
    return pb.ReplicaStats(
        replica_id=record.replica_id,
        cache_memory_bytes=stats.cache_memory_bytes,
        hit_rate=stats.hit_rate,
        pressure=stats.pressure,
        client_version=stats.client_version,
        t2_hit_tokens=stats.t2_hit_tokens,
        t2_query_tokens=stats.t2_query_tokens,
    )
