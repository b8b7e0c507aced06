"""Requests as bytes, made before the clock starts: clients must not be what is measured."""

from benchmarks.workload import BLOCK_TOKENS, MODEL, SCHEME, TENANT, Chain, counts_of
from inferencecache.v1alpha1.inferencecache_pb2 import (
    CacheEvent,
    CacheStateUpdate,
    LookupRouteRequest,
)

SERVICE = "/inferencecache.v1alpha1.InferenceCache"
LOOKUP_ROUTE = f"{SERVICE}/LookupRoute"
REPORT_CACHE_STATE = f"{SERVICE}/ReportCacheState"
PUBLISH_EVENT = f"{SERVICE}/PublishEvent"
EMPTY_SERVICE = "benchmarks.Empty"
EMPTY_CALL = f"/{EMPTY_SERVICE}/Call"
EMPTY_STREAM = f"/{EMPTY_SERVICE}/Stream"
STEPS_SERVICE = "benchmarks.Steps"
STEPS_CALL = f"/{STEPS_SERVICE}/Call"


def as_bytes(message: bytes) -> bytes:
    """Return *message*: the serialiser of calls whose messages are bytes already."""
    return message


def lookup_bytes(chain: Chain) -> bytes:
    """Return a LookupRoute request for a chain."""
    request = LookupRouteRequest(
        model_id=MODEL,
        tenant_id=TENANT,
        hash_scheme=SCHEME,
        block_hashes=chain,
        block_token_counts=counts_of(chain),
    )
    return request.SerializeToString()


def chain_bytes(replica_id: str, chain: Chain) -> bytes:
    """Return an update with one chain entry."""
    update = _update(replica_id)
    update.prefixes.add(block_hashes=chain, block_token_counts=counts_of(chain))
    return update.SerializeToString()


def entries_bytes(replica_id: str, chain: Chain) -> bytes:
    """Return an update with one entry per block, as engine producers send it."""
    update = _update(replica_id)
    for position, block_hash in enumerate(chain):
        update.prefixes.add(prefix_hash=block_hash, token_count=BLOCK_TOKENS * (position + 1))
    return update.SerializeToString()


def evicted_bytes(replica_id: str, block_hash: bytes) -> bytes:
    """Return the event that a replica dropped a block."""
    event = CacheEvent(
        type=CacheEvent.PREFIX_EVICTED,
        replica_id=replica_id,
        model_id=MODEL,
        tenant_id=TENANT,
        prefix_hash=block_hash,
    )
    return event.SerializeToString()


def _update(replica_id: str) -> CacheStateUpdate:
    return CacheStateUpdate(
        replica_id=replica_id, model_id=MODEL, tenant_id=TENANT, hash_scheme=SCHEME
    )
