"""Values that cross layers: identifiers, vocabularies and the limits of the wire."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

INT32_MAX: Final = 2**31 - 1

PROBE_TENANT_ID: Final = "inferencecache.io/probe"
"""The reserved tenant of the self-test: invisible to every public surface."""

PROBE_REPLICA_PREFIX: Final = "__probe-"


class CacheTier(IntEnum):
    """Where a replica holds a block; the numbers are the wire's."""

    UNSPECIFIED = 0
    T1 = 1
    T2 = 2
    T3 = 3


COLDEST_TIER: Final = INT32_MAX
"""What a negative wire tier is stored as: colder than every named tier."""


class ReasonCode(StrEnum):
    """Why LookupRoute answered as it did. ``docs/reference/reason-codes.md`` lists them."""

    PREFIX_MATCH = "PREFIX_MATCH"
    TENANT_HOT = "TENANT_HOT"
    AFFINITY_HINT = "AFFINITY_HINT"
    NO_HINT = "NO_HINT"
    POLICY_REQUIRES_CHAIN = "POLICY_REQUIRES_CHAIN"
    TIMEOUT = "TIMEOUT"
    UNKNOWN_TENANT = "UNKNOWN_TENANT"
    UNKNOWN_MODEL = "UNKNOWN_MODEL"
    UNKNOWN_HASH_SCHEME = "UNKNOWN_HASH_SCHEME"


class EvictionAlgorithm(StrEnum):
    """How a tenant's victims are chosen when the index is at its cap."""

    LRU = "lru"
    LFU = "lfu"


class Scope(NamedTuple):
    """One engine domain: replicas in it can serve one another's prompts, up to the adapter."""

    tenant_id: str
    model_id: str
    hash_scheme: str


class PartitionKey(NamedTuple):
    """One part of the index: blocks are compared only within it."""

    tenant_id: str
    model_id: str
    hash_scheme: str
    adapter_id: str


Candidate = tuple[str, int, int, int, int]
"""A replica that holds a leading part of a request, before scoring.

``(replica_id, matched_tokens, oldest last_seen_ns, coldest tier, matched blocks)``; a plain tuple
because a lookup makes one per replica.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsReport:
    """What a replica says about itself; non-finite ratios have become 0.

    Attributes:
        cache_memory_bytes: Memory of its cache, as reported.
        hit_rate: Prefix hit ratio, normally 0 to 1, not clamped.
        pressure: Load ratio, normally 0 to 1, not clamped.
        client_version: Opaque version of the client library.
        t2_hit_tokens: Cumulative tokens served by the offload tier.
        t2_query_tokens: Cumulative tokens asked of the offload tier.
    """

    cache_memory_bytes: int = 0
    hit_rate: float = 0.0
    pressure: float = 0.0
    client_version: str = ""
    t2_hit_tokens: int = 0
    t2_query_tokens: int = 0


class StatsRecord:
    """The latest statistics of one replica in one (tenant, model).

    Attributes:
        replica_id: The replica.
        model_id: The model.
        stats: The numbers.
        reported_ns: When the numbers arrived.
        last_seen_ns: Latest sign of life; also moved by REPLICA_UPDATED.
    """

    __slots__ = ("last_seen_ns", "model_id", "replica_id", "reported_ns", "stats")

    def __init__(
        self, replica_id: str, stats: StatsReport, seen_ns: int, model_id: str = ""
    ) -> None:
        self.replica_id = replica_id
        self.model_id = model_id
        self.stats = stats
        self.reported_ns = seen_ns
        self.last_seen_ns = seen_ns
