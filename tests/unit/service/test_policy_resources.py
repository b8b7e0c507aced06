"""From objects to what the policy store takes."""

import json
from dataclasses import replace

import pytest
from resource_texts import load, policy, tenant, together

from inferencecache.policy import (
    CachePolicy,
    PolicySnapshot,
    PolicyStore,
    Strategy,
    TenantQuota,
    decode_policy_push,
)
from inferencecache.resources import LoadState, ObjectKey
from inferencecache.service.policy_resources import policy_snapshot_slices
from inferencecache.settings.policy import PolicySettings
from inferencecache.types import EvictionAlgorithm

MINUTE_NS = 60_000_000_000
FLOAT32_TENTH = 0.10000000149011612


def flattened(state: LoadState, settings: PolicySettings | None = None) -> PolicySnapshot:
    """Return what the objects of *state* say."""
    assert not state.errors
    steps = policy_snapshot_slices(state, settings or PolicySettings())
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            snapshot: PolicySnapshot = finished.value
            return snapshot


def test_every_member_of_a_policy_arrives() -> None:
    """Nothing that a policy can say is lost on the way."""
    text = policy(
        "{eviction: LFU, evictionTTL: 1h30m, minimumPrefixTokens: 1, minimumMatchedTokens: 2, "
        "routingFloorScore: '0.1', lookupTimeoutMs: 3, affinityRouting: Disabled, "
        "strategy: {enableChainMatching: true, requireChain: true, enableTenantHot: false}}"
    )

    assert flattened(load({"a.yaml": text})).policies == (
        CachePolicy(
            namespace="team-a",
            eviction="lfu",
            eviction_ttl_ns=90 * MINUTE_NS,
            minimum_prefix_tokens=1,
            minimum_matched_tokens=2,
            routing_floor_score=FLOAT32_TENTH,
            lookup_timeout_ms=3,
            affinity_routing=False,
            strategy=Strategy(
                enable_chain_matching=True, require_chain=True, enable_tenant_hot=False
            ),
        ),
    )


def test_what_is_left_out_is_decided_by_the_server() -> None:
    """An empty policy is as good as none."""
    settings = PolicySettings(minimum_matched_tokens=7, routing_floor_score=0.5)
    store = PolicyStore(settings, default_ttl_ns=MINUTE_NS)
    store.replace(flattened(load({"a.yaml": policy()}), settings))

    assert store.resolved("team-a") == store.resolved("somebody else")
    assert store.resolved("team-a").algorithm is EvictionAlgorithm.LRU
    assert store.resolved("team-a").minimum_matched_tokens == 7


def test_zero_is_said() -> None:
    """A zero switches a floor off; it does not fall back to the default."""
    text = policy("{minimumMatchedTokens: 0, routingFloorScore: '0'}")
    store = PolicyStore(PolicySettings(), default_ttl_ns=MINUTE_NS)
    store.replace(flattened(load({"a.yaml": text})))

    resolved = store.resolved("team-a")

    assert (resolved.minimum_matched_tokens, resolved.routing_floor_score) == (0, 0.0)


def test_the_first_policy_of_a_namespace_counts() -> None:
    """By name, whatever the order of files; the others say that they do not."""
    state = load(
        {
            "a.yaml": policy("{minimumPrefixTokens: 2}", name="b"),
            "b.yaml": policy("{minimumPrefixTokens: 1}", name="a"),
        }
    )

    (counting,) = flattened(state).policies
    assert counting.minimum_prefix_tokens == 1
    shadowed = state.states[ObjectKey("CachePolicy", "team-a", "b")]
    assert (shadowed.name, shadowed.reason) == ("Shadowed", "SecondPolicyInNamespace")


def test_only_tenants_with_a_quota_are_bounded() -> None:
    """A quota of nothing is a quota."""
    text = together(
        tenant("{tenantID: a}", name="a"),
        tenant("{tenantID: b, quota: {}}", name="b"),
        tenant("{tenantID: c, quota: {maxIndexEntries: 0}, isolationMode: Fairness}", name="c"),
    )

    assert flattened(load({"a.yaml": text})).tenants == (
        TenantQuota(tenant_id="c", max_index_entries=0, isolation_mode="Fairness"),
    )


def test_the_first_quota_of_a_tenant_counts() -> None:
    """By namespace and name; one without a quota stands back, and says so."""
    state = load(
        {
            "a.yaml": together(
                tenant("{tenantID: t, quota: {maxIndexEntries: 3}}", namespace="team-c"),
                tenant("{tenantID: t, quota: {maxIndexEntries: 2}}", namespace="team-b"),
                tenant("{tenantID: t}", namespace="team-a"),
            )
        }
    )

    (quota,) = flattened(state).tenants
    assert quota.max_index_entries == 2
    assert {key.namespace: state.name for key, state in state.states.items()} == {
        "team-a": "Shadowed",
        "team-b": "Active",
        "team-c": "Shadowed",
    }


def pushed(*policies: object, tenants: tuple[object, ...] = ()) -> PolicyStore:
    """Return a store after a push of version 7."""
    body = json.dumps({"version": 7, "policies": policies, "tenants": tenants})
    store = PolicyStore(PolicySettings(), MINUTE_NS)
    store.replace(decode_policy_push(body.encode()))
    return store


@pytest.mark.parametrize(
    ("member", "value", "resolved", "meant"),
    [
        ("eviction", "FIFO", "algorithm", EvictionAlgorithm.LRU),
        ("eviction", "lfu", "algorithm", EvictionAlgorithm.LFU),
        ("evictionTTL", -1, "ttl_ns", MINUTE_NS),
        ("evictionTTL", 0, "ttl_ns", MINUTE_NS),
        ("minimumPrefixTokens", -1, "minimum_prefix_tokens", 0),
        ("minimumMatchedTokens", -1, "minimum_matched_tokens", 0),
        ("routingFloorScore", -1, "routing_floor_score", 0.0),
        ("lookupTimeoutMs", -1, "lookup_timeout_ms", None),
    ],
)
def test_what_files_refuse_means_something_in_a_push(
    member: str, value: object, resolved: str, meant: object
) -> None:
    """A file with it is wrong, and its policy is not there."""
    store = pushed({"namespace": "team-a", member: value})
    assert getattr(store.resolved("team-a"), resolved) == meant

    state = load({"a.yaml": policy(json.dumps({member: value}))})
    assert [error.field for error in state.errors] == [f"spec.{member}"]
    assert not state.objects


def test_a_quota_below_0_is_0_in_a_push_and_an_error_in_a_file() -> None:
    """One that is left out is 0 in a push and none in a file."""
    store = pushed(tenants=({"tenantID": "a", "maxIndexEntries": -1}, {"tenantID": "b"}))
    assert (store.quota("a"), store.quota("b")) == (0, 0)

    state = load({"a.yaml": tenant("{tenantID: a, quota: {maxIndexEntries: -1}}")})
    assert [error.field for error in state.errors] == ["spec.quota.maxIndexEntries"]
    assert flattened(load({"a.yaml": tenant("{tenantID: b, quota: {}}")})).tenants == ()


def test_a_number_left_out_is_0_in_a_push_and_the_servers_in_a_file() -> None:
    """Only for the shortest match is that a difference."""
    in_push = pushed({"namespace": "team-a"}).resolved("team-a")
    store = PolicyStore(PolicySettings(), MINUTE_NS)
    store.replace(flattened(load({"a.yaml": policy()})))
    in_file = store.resolved("team-a")

    assert (in_push.minimum_matched_tokens, in_file.minimum_matched_tokens) == (0, 64)
    assert replace(in_push, minimum_matched_tokens=64) == in_file


def test_of_two_the_later_counts_in_a_push_and_the_first_by_name_in_files() -> None:
    """Nameless ones and nulls are dropped from a push."""
    store = pushed(
        {"namespace": "team-a", "minimumMatchedTokens": 2},
        None,
        {"namespace": "", "minimumMatchedTokens": 3},
        {"namespace": "team-a", "minimumMatchedTokens": 1},
    )
    assert [p.minimum_matched_tokens for p in store.snapshot.policies] == [1]

    texts = (policy("{minimumMatchedTokens: 2}", "a"), policy("{minimumMatchedTokens: 1}", "b"))
    (found,) = flattened(load({"a.yaml": together(*texts)})).policies
    assert found.minimum_matched_tokens == 2
