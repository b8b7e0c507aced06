"""LookupRoute between protobuf and the service's values."""

from collections.abc import Sequence

from inferencecache.service import RouteAnswer, RouteRequest
from inferencecache.v1alpha1 import inferencecache_pb2 as pb


def route_request(
    message: pb.LookupRouteRequest,
    blocks_max: int | None = None,
    block_hashes: Sequence[bytes] | None = None,
) -> RouteRequest:
    """Return what *message* asks.

    The token ids stay in the message's own sequence: there may be a million of them, and they are
    taken slice by slice.

    Args:
        message: The request, or what is left of it.
        blocks_max: Blocks and counts that are taken out of the message; None for all.
        block_hashes: The blocks where they were taken out before.
    """
    return RouteRequest(
        model_id=message.model_id,
        tenant_id=message.tenant_id,
        hash_scheme=message.hash_scheme,
        adapter_id=message.adapter_id,
        prefix_hash=message.prefix_hash,
        prefix_token_count=message.prefix_token_count,
        block_hashes=(message.block_hashes[:blocks_max] if block_hashes is None else block_hashes),
        block_token_counts=message.block_token_counts[:blocks_max],
        token_ids=message.token_ids,
        prompt_text=message.prompt_text,
        ttft_ms=message.slo.ttft_ms,
    )


def route_response(answer: RouteAnswer) -> pb.LookupRouteResponse:
    """Return *answer* as a message.

    Every lookup passes here, and setting a field takes less than an argument by name does; a field
    that is not set is as good as an empty one.
    """
    reason_code, replicas, adapter_id, token_ids, latency_us = answer
    message = pb.LookupRouteResponse()
    message.reason_code = reason_code
    message.lookup_latency_us = latency_us
    if adapter_id:
        message.adapter_id = adapter_id
    if token_ids:
        message.token_ids.extend(token_ids)
    add = message.replica_scores.add
    for replica_id, score, matched_tokens, probability, tier, _ in replicas:
        row = add()
        row.replica_id = replica_id
        row.score = score
        row.matched_tokens = matched_tokens
        row.estimated_cache_hit_prob = probability
        row.tier = tier  # type: ignore[assignment] # enums are open on the wire
    return message
