"""From objects to what the policy store takes."""

from resource_texts import load, policy, tenant, together

from inferencecache.policy import (
    CachePolicy,
    PolicySnapshot,
    PolicyStore,
    Strategy,
    TenantQuota,
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
