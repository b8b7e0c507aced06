"""The policies in force."""

import pytest

from inferencecache.policy import (
    CachePolicy,
    PolicySnapshot,
    PolicyStore,
    ResolvedPolicy,
    Strategy,
    TenantQuota,
)
from inferencecache.settings.policy import PolicySettings
from inferencecache.types import PROBE_TENANT_ID, EvictionAlgorithm

MINUTE_NS = 60_000_000_000
DEFAULT_TTL_NS = 30 * MINUTE_NS
FLOAT32_TENTH = 0.10000000149011612


@pytest.fixture
def store() -> PolicyStore:
    """Return an empty store."""
    return PolicyStore(PolicySettings(), DEFAULT_TTL_NS)


def policies(*pushed: CachePolicy) -> PolicySnapshot:
    """Return a snapshot of policies."""
    return PolicySnapshot(policies=pushed)


def quotas(*pushed: tuple[str, int]) -> PolicySnapshot:
    """Return a snapshot of quotas."""
    return PolicySnapshot(
        tenants=tuple(
            TenantQuota(tenant_id=tenant_id, max_index_entries=entries)
            for tenant_id, entries in pushed
        )
    )


def test_without_policy_the_defaults_hold(store: PolicyStore) -> None:
    """A tenant nobody pushed a policy for gets the documented defaults."""
    assert store.resolved("team-a") == ResolvedPolicy(
        ttl_ns=DEFAULT_TTL_NS,
        algorithm=EvictionAlgorithm.LRU,
        minimum_prefix_tokens=0,
        minimum_matched_tokens=64,
        routing_floor_score=FLOAT32_TENTH,
        lookup_timeout_ms=None,
        affinity_enabled=True,
        chain_enabled=True,
        require_chain=False,
        tenant_hot_enabled=True,
    )
    assert store.quota("team-a") is None
    assert store.ttl_ns("team-a") == DEFAULT_TTL_NS
    assert store.algorithm("team-a") is EvictionAlgorithm.LRU


def test_an_empty_policy_differs_only_in_its_token_floor(store: PolicyStore) -> None:
    """A policy that says nothing has the defaults, but accepts matches of any length."""
    default = store.resolved("other")

    store.replace(policies(CachePolicy(namespace="team-a")))

    resolved = store.resolved("team-a")
    assert resolved.minimum_matched_tokens == 0
    assert resolved.routing_floor_score == default.routing_floor_score
    assert resolved.ttl_ns == default.ttl_ns
    assert store.resolved("other") == default


def test_a_full_policy_is_resolved(store: PolicyStore) -> None:
    """Every member pushed is what applies."""
    store.replace(
        policies(
            CachePolicy(
                namespace="team-a",
                eviction="LFU",
                eviction_ttl_ns=15 * MINUTE_NS,
                minimum_prefix_tokens=32,
                minimum_matched_tokens=256,
                routing_floor_score=5.0,
                lookup_timeout_ms=25,
                affinity_routing=False,
                strategy=Strategy(
                    enable_chain_matching=False, require_chain=True, enable_tenant_hot=False
                ),
            )
        )
    )

    assert store.resolved("team-a") == ResolvedPolicy(
        ttl_ns=15 * MINUTE_NS,
        algorithm=EvictionAlgorithm.LFU,
        minimum_prefix_tokens=32,
        minimum_matched_tokens=256,
        routing_floor_score=5.0,
        lookup_timeout_ms=25,
        affinity_enabled=False,
        chain_enabled=False,
        require_chain=True,
        tenant_hot_enabled=False,
    )
    assert store.ttl_ns("team-a") == 15 * MINUTE_NS
    assert store.algorithm("team-a") is EvictionAlgorithm.LFU


@pytest.mark.parametrize(
    ("eviction", "expected"),
    [("lfu", "lfu"), ("LfU", "lfu"), ("lru", "lru"), ("", "lru"), ("fifo", "lru")],
)
def test_only_lfu_means_lfu(store: PolicyStore, eviction: str, expected: str) -> None:
    """Any other word behaves as LRU."""
    store.replace(policies(CachePolicy(namespace="a", eviction=eviction)))

    assert store.algorithm("a") == expected


@pytest.mark.parametrize(
    ("pushed", "expected"),
    [
        (None, FLOAT32_TENTH),
        (0.0, 0.0),
        (5.0, 5.0),
        (-1.0, 0.0),
        (float("nan"), FLOAT32_TENTH),
        (float("inf"), FLOAT32_TENTH),
    ],
)
def test_score_floor(store: PolicyStore, pushed: float | None, expected: float) -> None:
    """Null means the default, negative means off, what is no number means the default."""
    store.replace(policies(CachePolicy(namespace="a", routing_floor_score=pushed)))

    assert store.resolved("a").routing_floor_score == expected


def test_negative_numbers_mean_off(store: PolicyStore) -> None:
    """Negative minimums, timeouts and lifetimes behave as unset."""
    store.replace(
        policies(
            CachePolicy(
                namespace="a",
                eviction_ttl_ns=-1,
                minimum_prefix_tokens=-1,
                minimum_matched_tokens=-1,
                lookup_timeout_ms=-1,
            )
        )
    )

    resolved = store.resolved("a")
    assert resolved.ttl_ns == DEFAULT_TTL_NS
    assert resolved.minimum_prefix_tokens == 0
    assert resolved.minimum_matched_tokens == 0
    assert resolved.lookup_timeout_ms is None


@pytest.mark.parametrize(("routing", "expected"), [(None, True), (True, True), (False, False)])
def test_affinity(store: PolicyStore, routing: bool | None, expected: bool) -> None:  # noqa: FBT001 - table columns
    """Affinity is on unless it is switched off."""
    store.replace(policies(CachePolicy(namespace="a", affinity_routing=routing)))

    assert store.resolved("a").affinity_enabled is expected


def test_settings_are_the_defaults() -> None:
    """What no policy says comes from the settings."""
    settings = PolicySettings(
        minimum_matched_tokens=1,
        routing_floor_score=0.0,
        affinity_routing=False,
        chain_matching=False,
        require_chain=True,
        tenant_hot=False,
    )
    resolved = PolicyStore(settings, 1).resolved("anyone")

    assert (resolved.minimum_matched_tokens, resolved.routing_floor_score) == (1, 0.0)
    assert resolved.affinity_enabled is False
    assert resolved.chain_enabled is False
    assert resolved.tenant_hot_enabled is False
    assert resolved.require_chain is True


def test_replace_drops_what_is_not_pushed_again(store: PolicyStore) -> None:
    """A replace is the whole truth, says what it removed and moves the revision."""
    assert store.revision == 0
    first = store.replace(
        PolicySnapshot(
            policies=(
                CachePolicy(namespace="team-a", eviction_ttl_ns=15 * MINUTE_NS),
                CachePolicy(namespace="team-b"),
            ),
            tenants=(TenantQuota(tenant_id="team-c", max_index_entries=5),),
        )
    )
    second = store.replace(policies(CachePolicy(namespace="team-a", eviction_ttl_ns=5)))
    third = store.replace(PolicySnapshot())

    assert (first.policies_removed, first.quotas_removed) == (0, 0)
    assert (second.policies_removed, second.quotas_removed) == (1, 1)
    assert (third.policies_removed, third.quotas_removed) == (1, 0)
    assert store.revision == 3
    assert store.resolved("team-a") == store.resolved("team-b")
    assert store.quota("team-c") is None


def test_nameless_entries_are_dropped(store: PolicyStore) -> None:
    """A policy or quota for the empty tenant is ignored."""
    store.replace(
        PolicySnapshot(
            policies=(CachePolicy(namespace="", eviction_ttl_ns=1), CachePolicy(namespace="ok")),
            tenants=(TenantQuota(tenant_id="", max_index_entries=1),),
        )
    )

    assert store.ttl_ns("") == DEFAULT_TTL_NS
    assert store.quota("") is None
    assert [policy.namespace for policy in store.snapshot.policies] == ["ok"]
    assert store.snapshot.tenants == ()


def test_the_later_duplicate_counts(store: PolicyStore) -> None:
    """Of two entries for one tenant the later one is in force."""
    store.replace(
        PolicySnapshot(
            policies=(
                CachePolicy(namespace="a", eviction_ttl_ns=1, lookup_timeout_ms=9),
                CachePolicy(namespace="a", eviction_ttl_ns=2),
            ),
            tenants=(
                TenantQuota(tenant_id="a", max_index_entries=1),
                TenantQuota(tenant_id="a", max_index_entries=2),
            ),
        )
    )

    assert store.ttl_ns("a") == 2
    assert store.resolved("a").lookup_timeout_ms is None
    assert store.quota("a") == 2


def test_quotas(store: PolicyStore) -> None:
    """Quotas are kept per tenant, negative ones as 0; others are unbounded."""
    store.replace(quotas(("team-b", 0), ("team-a", 1000), ("team-c", -1)))

    assert [store.quota(t) for t in ("team-a", "team-b", "team-c", "team-z")] == [1000, 0, 0, None]
    assert [t.tenant_id for t in store.snapshot.tenants] == ["team-a", "team-b", "team-c"]


def test_the_probe_tenant_is_exempt(store: PolicyStore) -> None:
    """A quota for the probe tenant is never in force."""
    store.replace(quotas((PROBE_TENANT_ID, 0), ("team-a", 1000)))

    assert store.quota(PROBE_TENANT_ID) is None
    assert store.quota("team-a") == 1000
