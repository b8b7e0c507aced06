"""From a policy as pushed to what applies."""

import math
from typing import Final

from inferencecache.policy.model import CachePolicy, ResolvedPolicy, Strategy, to_float32
from inferencecache.settings.policy import PolicySettings
from inferencecache.types import EvictionAlgorithm

_ALL_DEFAULTS: Final = Strategy()


def resolve_default(settings: PolicySettings, default_ttl_ns: int) -> ResolvedPolicy:
    """Return what applies to a tenant without a policy.

    Args:
        settings: The defaults.
        default_ttl_ns: Lifetime of entries, nanoseconds, > 0.
    """
    unset = CachePolicy(namespace="", minimum_matched_tokens=settings.minimum_matched_tokens)
    return resolve(unset, settings, default_ttl_ns)


def resolve(policy: CachePolicy, settings: PolicySettings, default_ttl_ns: int) -> ResolvedPolicy:
    """Return what applies to a tenant with *policy*.

    Args:
        policy: As pushed.
        settings: The defaults.
        default_ttl_ns: Lifetime of entries where the policy names none, nanoseconds, > 0.
    """
    strategy = policy.strategy or _ALL_DEFAULTS
    return ResolvedPolicy(
        ttl_ns=policy.eviction_ttl_ns if policy.eviction_ttl_ns > 0 else default_ttl_ns,
        algorithm=_algorithm(policy.eviction),
        minimum_prefix_tokens=max(0, policy.minimum_prefix_tokens),
        minimum_matched_tokens=max(0, policy.minimum_matched_tokens),
        routing_floor_score=_floor(policy.routing_floor_score, settings.routing_floor_score),
        lookup_timeout_ms=policy.lookup_timeout_ms if policy.lookup_timeout_ms > 0 else None,
        affinity_enabled=_given(policy.affinity_routing, settings.affinity_routing),
        chain_enabled=_given(strategy.enable_chain_matching, settings.chain_matching),
        require_chain=_given(strategy.require_chain, settings.require_chain),
        tenant_hot_enabled=_given(strategy.enable_tenant_hot, settings.tenant_hot),
    )


def _given(value: bool | None, default: bool) -> bool:  # noqa: FBT001 - values, not switches
    """Return *value*, or *default* when it was not said."""
    return default if value is None else value


def _floor(value: float | None, default: float) -> float:
    """Return the score floor as a float32, at least 0."""
    if value is None or not math.isfinite(value):
        value = default
    return to_float32(max(0.0, value))


def _algorithm(eviction: str) -> EvictionAlgorithm:
    """Return the algorithm that *eviction* names."""
    is_lfu = eviction.lower() == EvictionAlgorithm.LFU
    return EvictionAlgorithm.LFU if is_lfu else EvictionAlgorithm.LRU
