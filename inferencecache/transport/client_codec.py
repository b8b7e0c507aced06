"""Client side of the wire contract: domain values to protobuf and back."""

from google.protobuf.message import DecodeError

from inferencecache.clock import NS_PER_US
from inferencecache.errors import InvalidRequestError
from inferencecache.transport.client_values import (
    CacheUpdate,
    FailOpenCause,
    HeldPrefix,
    LookupAnswer,
    LookupFailure,
    LookupOutcome,
    LookupQuery,
    Removal,
    ReplicaHint,
)
from inferencecache.types import CacheTier, StatsReport
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

_TIERS = {int(tier): tier for tier in CacheTier}


def encode_query(query: LookupQuery) -> bytes:
    """Return the LookupRouteRequest that asks *query*.

    Raises:
        ValueError: A number or string does not fit its field.
        TypeError: A value is of the wrong type.
    """
    message = pb.LookupRouteRequest(
        model_id=query.model_id,
        tenant_id=query.tenant_id,
        prefix_hash=query.prefix_hash,
        prefix_token_count=query.prefix_token_count,
        hash_scheme=query.hash_scheme,
        block_hashes=query.block_hashes,
        block_token_counts=query.block_token_counts,
        token_ids=query.token_ids,
        prompt_text=query.prompt_text,
        adapter_id=query.adapter_id,
    )
    if query.ttft_ms or query.tbt_ms:
        message.slo.ttft_ms = query.ttft_ms
        message.slo.tbt_ms = query.tbt_ms
    return message.SerializeToString()


def decode_answer(data: bytes) -> LookupOutcome:
    """Return the LookupRouteResponse in *data*, or a failure if it does not parse."""
    try:
        message = pb.LookupRouteResponse.FromString(data)
    except DecodeError as error:
        return LookupFailure(FailOpenCause.INVALID_ANSWER, str(error))
    return LookupAnswer(
        reason_code=message.reason_code,
        hints=tuple(_decode_hint(score) for score in message.replica_scores),
        adapter_id=message.adapter_id,
        token_ids=tuple(message.token_ids),
        latency_us=message.lookup_latency_us,
    )


def _decode_hint(score: pb.ReplicaScore) -> ReplicaHint:
    return ReplicaHint(
        score.replica_id,
        score.score,
        score.matched_tokens,
        score.estimated_cache_hit_prob,
        _TIERS.get(score.tier, CacheTier.UNSPECIFIED),
    )


def encode_update(update: CacheUpdate) -> pb.CacheStateUpdate:
    """Return the message that reports *update*.

    Raises:
        InvalidRequestError: A value does not fit its field.
    """
    try:
        return _update_message(update)
    except (TypeError, ValueError) as error:
        raise _does_not_fit("update", error) from error


def _update_message(update: CacheUpdate) -> pb.CacheStateUpdate:
    message = pb.CacheStateUpdate(
        replica_id=update.replica.replica_id,
        model_id=update.replica.model_id,
        tenant_id=update.replica.tenant_id,
        hash_scheme=update.hash_scheme,
        timestamp_us=update.timestamp_ns // NS_PER_US,
        prefixes=[_encode_prefix(prefix) for prefix in update.prefixes],
        adapter_id=update.adapter_id,
    )
    if update.stats is not None:
        message.stats.CopyFrom(_encode_stats(update.replica.replica_id, update.stats))
    return message


def _encode_prefix(prefix: HeldPrefix) -> pb.PrefixEntry:
    return pb.PrefixEntry(
        prefix_hash=prefix.prefix_hash,
        token_count=prefix.token_count,
        block_hashes=prefix.block_hashes,
        block_token_counts=prefix.block_token_counts,
        tier=pb.CacheTier.ValueType(int(prefix.tier)),
        adapter_id=prefix.adapter_id,
    )


def _encode_stats(replica_id: str, stats: StatsReport) -> pb.ReplicaStats:
    return pb.ReplicaStats(
        replica_id=replica_id,
        cache_memory_bytes=stats.cache_memory_bytes,
        hit_rate=stats.hit_rate,
        pressure=stats.pressure,
        client_version=stats.client_version,
        t2_hit_tokens=stats.t2_hit_tokens,
        t2_query_tokens=stats.t2_query_tokens,
    )


def encode_removal(removal: Removal) -> pb.CacheEvent:
    """Return the message that publishes *removal*.

    Raises:
        InvalidRequestError: A value does not fit its field.
    """
    try:
        return _removal_message(removal)
    except (TypeError, ValueError) as error:
        raise _does_not_fit("removal", error) from error


def _removal_message(removal: Removal) -> pb.CacheEvent:
    cleared = removal.prefix_hash is None
    return pb.CacheEvent(
        type=pb.CacheEvent.ALL_CLEARED if cleared else pb.CacheEvent.PREFIX_EVICTED,
        replica_id=removal.replica.replica_id,
        model_id=removal.replica.model_id,
        tenant_id=removal.replica.tenant_id,
        prefix_hash=removal.prefix_hash or b"",
        timestamp_us=removal.timestamp_ns // NS_PER_US,
        adapter_id=removal.adapter_id,
    )


def decode_ack(data: bytes) -> pb.Ack | None:
    """Return the Ack in *data*, None if it does not parse."""
    try:
        return pb.Ack.FromString(data)
    except DecodeError:
        return None


def _does_not_fit(field: str, error: Exception) -> InvalidRequestError:
    return InvalidRequestError(field=field, value=str(error), allowed="values that fit the wire")
