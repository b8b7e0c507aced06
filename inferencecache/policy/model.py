"""Policies as pushed and as resolved."""

import struct
from dataclasses import dataclass
from typing import Final

from inferencecache.types import EvictionAlgorithm

FLOAT32_MAX: Final = 3.4028234663852886e38
_FLOAT32: Final = struct.Struct("<f")


def to_float32(value: float) -> float:
    """Return *value* rounded to single precision; beyond its range, the largest float32.

    Args:
        value: Any finite number.
    """
    clamped = min(max(value, -FLOAT32_MAX), FLOAT32_MAX)
    rounded: float = _FLOAT32.unpack(_FLOAT32.pack(clamped))[0]
    return rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How a tenant's lookups may be answered; None leaves a member to the default.

    Attributes:
        enable_chain_matching: Match block by block.
        require_chain: Refuse lookups without a block chain.
        enable_tenant_hot: Answer an exact miss with warm replicas.
    """

    enable_chain_matching: bool | None = None
    require_chain: bool | None = None
    enable_tenant_hot: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePolicy:
    """One tenant's policy as pushed; nothing is clamped or defaulted yet.

    Attributes:
        namespace: The tenant; empty ones are ignored.
        eviction: ``lfu`` in any case means LFU, anything else LRU.
        eviction_ttl_ns: Lifetime of entries, nanoseconds; at or below 0 means the default.
        minimum_prefix_tokens: Shortest prompt worth a lookup; at or below 0 means any.
        minimum_matched_tokens: Shortest match worth a hint; at or below 0 means any.
        routing_floor_score: Smallest best score worth a hint, a float32; None means the default.
        lookup_timeout_ms: Time budget of a lookup; at or below 0 means none.
        affinity_routing: Pin unknown prompts by their hash; None means the default.
        strategy: Gates; None means all defaults.
    """

    namespace: str
    eviction: str = ""
    eviction_ttl_ns: int = 0
    minimum_prefix_tokens: int = 0
    minimum_matched_tokens: int = 0
    routing_floor_score: float | None = None
    lookup_timeout_ms: int = 0
    affinity_routing: bool | None = None
    strategy: Strategy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantQuota:
    """One tenant's quota as pushed.

    Attributes:
        tenant_id: The tenant; empty ones are ignored.
        max_index_entries: Distinct keys it may hold; negative counts as 0.
        isolation_mode: Carried, without effect.
    """

    tenant_id: str
    max_index_entries: int = 0
    isolation_mode: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySnapshot:
    """All policies and quotas at one moment, as of version 7 of the push.

    Attributes:
        policies: In the order pushed; of two for one tenant the later one counts.
        tenants: In the order pushed; of two for one tenant the later one counts.
    """

    policies: tuple[CachePolicy, ...] = ()
    tenants: tuple[TenantQuota, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPolicy:
    """What applies to a tenant's lookups, defaults filled in.

    Attributes:
        ttl_ns: Lifetime of entries, nanoseconds, > 0.
        algorithm: How cap victims are chosen.
        minimum_prefix_tokens: Shortest prompt worth a lookup; 0 means any.
        minimum_matched_tokens: Shortest match worth a hint; 0 means any.
        routing_floor_score: Smallest best score worth a hint, a float32; 0 means any.
        lookup_timeout_ms: Time budget of a lookup, > 0, or None.
        affinity_enabled: Pin unknown prompts by their hash.
        chain_enabled: Match block by block.
        require_chain: Refuse lookups without a block chain.
        tenant_hot_enabled: Answer an exact miss with warm replicas.
    """

    ttl_ns: int
    algorithm: EvictionAlgorithm
    minimum_prefix_tokens: int
    minimum_matched_tokens: int
    routing_floor_score: float
    lookup_timeout_ms: int | None
    affinity_enabled: bool
    chain_enabled: bool
    require_chain: bool
    tenant_hot_enabled: bool
