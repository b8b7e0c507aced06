"""From CachePolicy and CacheTenant objects to the policies and quotas that the store takes.

What an object leaves out stays unsaid, so that the server's own settings decide; only
minimumMatchedTokens, which a policy cannot leave unsaid, is filled in here.
"""

from collections.abc import Generator

from inferencecache.policy import CachePolicy, PolicySnapshot, Strategy, TenantQuota
from inferencecache.policy.model import to_float32
from inferencecache.resources import (
    CACHE_POLICY,
    CACHE_TENANT,
    CachePolicySpec,
    LoadState,
    ResourceObject,
    StateName,
    StrategySpec,
    quota_of,
    tenants_in_force,
    ttl_ns_of,
)
from inferencecache.settings.policy import PolicySettings
from inferencecache.types import EvictionAlgorithm

_SLICE_OBJECTS = 250


def policy_snapshot_slices(
    load: LoadState, settings: PolicySettings
) -> Generator[None, None, PolicySnapshot]:
    """Return what the objects in force say, giving way between bounded slices.

    Args:
        load: All objects; of several policies in a namespace the first by name counts, of several
            tenants with one id the first with a quota by namespace and name.
        settings: Fills in what a policy cannot leave unsaid.

    Complexity: O(n) in objects.
    """
    policies: list[CachePolicy] = []
    for count, found in enumerate(CACHE_POLICY.objects_in(load), start=1):
        if load.states[found.key].name == StateName.ACTIVE:
            policies.append(_policy(found, settings))
        if not count % _SLICE_OBJECTS:
            yield
    quotas: list[TenantQuota] = []
    in_force = tenants_in_force(CACHE_TENANT.objects_in(load))
    yield
    for count, (tenant_id, tenant) in enumerate(in_force.items(), start=1):
        entries = quota_of(tenant.spec)
        if entries is not None:
            quotas.append(
                TenantQuota(
                    tenant_id=tenant_id,
                    max_index_entries=entries,
                    isolation_mode=tenant.spec.isolation_mode or "",
                )
            )
        if not count % _SLICE_OBJECTS:
            yield
    return PolicySnapshot(policies=tuple(policies), tenants=tuple(quotas))


def _policy(found: ResourceObject[CachePolicySpec], settings: PolicySettings) -> CachePolicy:
    """Return what one object says about the tenant of its namespace."""
    spec = found.spec
    minimum = spec.minimum_matched_tokens
    affinity = spec.affinity_routing
    return CachePolicy(
        namespace=found.key.namespace,
        eviction=(spec.eviction or EvictionAlgorithm.LRU).lower(),
        eviction_ttl_ns=ttl_ns_of(spec),
        minimum_prefix_tokens=spec.minimum_prefix_tokens or 0,
        minimum_matched_tokens=settings.minimum_matched_tokens if minimum is None else minimum,
        routing_floor_score=_floor(spec.routing_floor_score),
        lookup_timeout_ms=spec.lookup_timeout_ms or 0,
        affinity_routing=None if affinity is None else affinity == "Enabled",
        strategy=_strategy(spec.strategy),
    )


def _floor(text: str | None) -> float | None:
    """Return a decimal text as a float32."""
    return None if text is None else to_float32(float(text))


def _strategy(spec: StrategySpec | None) -> Strategy | None:
    """Return the gates of a policy."""
    if spec is None:
        return None
    return Strategy(
        enable_chain_matching=spec.enable_chain_matching,
        require_chain=spec.require_chain,
        enable_tenant_hot=spec.enable_tenant_hot,
    )
