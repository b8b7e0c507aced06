"""Write a snapshot as a policy push of the newest version."""

import json
import math
from typing import Final

from inferencecache.policy.model import (
    FLOAT32_MAX,
    CachePolicy,
    PolicySnapshot,
    Strategy,
    TenantQuota,
    to_float32,
)
from inferencecache.policy.push import VERSION_MAX

_FLOAT32_DIGITS_MAX: Final = 9


def encode_policy_push(snapshot: PolicySnapshot) -> bytes:
    """Return *snapshot* as JSON that :func:`decode_policy_push` reads back as the same snapshot.

    Complexity: O(policies + tenants).
    """
    document = {
        "version": VERSION_MAX,
        "policies": [_policy(policy) for policy in snapshot.policies],
        "tenants": [_tenant(tenant) for tenant in snapshot.tenants],
    }
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")


def _policy(policy: CachePolicy) -> dict[str, object]:
    """Return the members of a policy, by their wire names."""
    return {
        "namespace": policy.namespace,
        "evictionTTL": policy.eviction_ttl_ns,
        "minimumPrefixTokens": policy.minimum_prefix_tokens,
        "minimumMatchedTokens": policy.minimum_matched_tokens,
        "routingFloorScore": _shortest(policy.routing_floor_score),
        "lookupTimeoutMs": policy.lookup_timeout_ms,
        "affinityRouting": policy.affinity_routing,
        "eviction": policy.eviction,
        "strategy": _strategy(policy.strategy),
    }


def _strategy(strategy: Strategy | None) -> dict[str, object] | None:
    """Return the members of a strategy, by their wire names."""
    if strategy is None:
        return None
    return {
        "enableChainMatching": strategy.enable_chain_matching,
        "requireChain": strategy.require_chain,
        "enableTenantHot": strategy.enable_tenant_hot,
    }


def _tenant(tenant: TenantQuota) -> dict[str, object]:
    """Return the members of a quota, by their wire names."""
    return {
        "tenantID": tenant.tenant_id,
        "maxIndexEntries": tenant.max_index_entries,
        "isolationMode": tenant.isolation_mode,
    }


def _shortest(value: float | None) -> float | None:
    """Return the number with the fewest digits that is *value* as a float32, 0.1 for example."""
    if value is None or not math.isfinite(value):
        return None
    target = to_float32(value)
    for digits in range(1, _FLOAT32_DIGITS_MAX + 1):
        short = float(f"{target:.{digits}g}")
        if abs(short) <= FLOAT32_MAX and to_float32(short) == target:
            return short
    return target
