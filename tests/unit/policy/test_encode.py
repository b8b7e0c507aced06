"""Writing snapshots back."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.policy import (
    CachePolicy,
    PolicySnapshot,
    Strategy,
    TenantQuota,
    decode_policy_push,
    encode_policy_push,
)
from inferencecache.settings.policy import PolicySettings

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
flags = st.none() | st.booleans()
strategies = st.builds(
    Strategy, enable_chain_matching=flags, require_chain=flags, enable_tenant_hot=flags
)
policies = st.builds(
    CachePolicy,
    namespace=names,
    eviction=names,
    eviction_ttl_ns=int64s,
    minimum_prefix_tokens=int32s,
    minimum_matched_tokens=int32s,
    routing_floor_score=st.none() | st.floats(width=32, allow_nan=False, allow_infinity=False),
    lookup_timeout_ms=int32s,
    affinity_routing=flags,
    strategy=st.none() | strategies,
)
quotas = st.builds(TenantQuota, tenant_id=names, max_index_entries=int64s, isolation_mode=names)
snapshots = st.builds(
    PolicySnapshot,
    policies=st.lists(policies, max_size=3).map(tuple),
    tenants=st.lists(quotas, max_size=3).map(tuple),
)


@given(snapshots)
def test_round_trip(snapshot: PolicySnapshot) -> None:
    """What was written is read back the same."""
    assert decode_policy_push(encode_policy_push(snapshot)) == snapshot


def test_shape() -> None:
    """The document is a version 7 push with every key, floats in their shortest form."""
    snapshot = PolicySnapshot(
        policies=(CachePolicy(namespace="a", routing_floor_score=0.10000000149011612),),
        tenants=(TenantQuota(tenant_id="a", max_index_entries=3),),
    )

    assert json.loads(encode_policy_push(snapshot)) == {
        "version": 7,
        "policies": [
            {
                "namespace": "a",
                "evictionTTL": 0,
                "minimumPrefixTokens": 0,
                "minimumMatchedTokens": 0,
                "routingFloorScore": 0.1,
                "lookupTimeoutMs": 0,
                "affinityRouting": None,
                "eviction": "",
                "strategy": None,
            }
        ],
        "tenants": [{"tenantID": "a", "maxIndexEntries": 3, "isolationMode": ""}],
    }


def test_the_largest_floor_survives() -> None:
    """Shortening never pushes a number beyond what a float32 can hold."""
    largest = 3.4028234663852886e38
    snapshot = PolicySnapshot(
        policies=(
            CachePolicy(namespace="a", routing_floor_score=largest),
            CachePolicy(namespace="b", routing_floor_score=-largest),
        )
    )

    assert decode_policy_push(encode_policy_push(snapshot)) == snapshot


def test_what_json_cannot_say_is_the_default() -> None:
    """A floor that is no number is written as null, which resolves the same."""
    snapshot = PolicySnapshot(policies=(CachePolicy(namespace="a", routing_floor_score=math.inf),))

    (policy,) = decode_policy_push(encode_policy_push(snapshot), PolicySettings()).policies

    assert policy.routing_floor_score is None
