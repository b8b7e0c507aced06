"""Files and pushes side by side."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.policy import (
    CachePolicy,
    LayeredPolicy,
    PolicyLayer,
    PolicyLayers,
    PolicySnapshot,
    PolicyStore,
    Replacement,
    TenantQuota,
)
from inferencecache.settings.policy import PolicySettings

FILES, PUSH = PolicyLayer.FILES, PolicyLayer.PUSH
NOTHING = PolicySnapshot()


@pytest.fixture
def store() -> PolicyStore:
    """Return an empty store."""
    return PolicyStore(PolicySettings(), 1)


@pytest.fixture
def layers(store: PolicyStore) -> PolicyLayers:
    """Return empty layers over *store*."""
    return PolicyLayers(store)


def saying(**minimum_prefix_tokens: int) -> PolicySnapshot:
    """Return one policy per tenant, told apart by a number, and a quota of the same number."""
    return PolicySnapshot(
        policies=tuple(
            CachePolicy(namespace=tenant_id, minimum_prefix_tokens=number)
            for tenant_id, number in minimum_prefix_tokens.items()
        ),
        tenants=tuple(
            TenantQuota(tenant_id=tenant_id, max_index_entries=number)
            for tenant_id, number in minimum_prefix_tokens.items()
        ),
    )


def test_one_layer_alone_is_in_force(layers: PolicyLayers, store: PolicyStore) -> None:
    """What only one source says counts."""
    layers.replace(FILES, saying(a=1))
    layers.replace(PUSH, saying(b=2))

    assert store.resolved("a").minimum_prefix_tokens == 1
    assert store.resolved("b").minimum_prefix_tokens == 2
    assert (store.quota("a"), store.quota("b")) == (1, 2)


def test_the_layer_that_changed_last_wins_per_tenant(
    layers: PolicyLayers, store: PolicyStore
) -> None:
    """A later word about one tenant leaves the others alone."""
    layers.replace(FILES, saying(a=1, b=1))
    layers.replace(PUSH, saying(a=2, b=2))
    layers.replace(FILES, saying(a=3, b=1))

    assert store.resolved("a").minimum_prefix_tokens == 3
    assert store.resolved("b").minimum_prefix_tokens == 2


def test_saying_the_same_again_is_no_change(layers: PolicyLayers, store: PolicyStore) -> None:
    """A push repeated every 30 seconds does not take back what a file has changed since."""
    layers.replace(PUSH, saying(a=2))
    layers.replace(FILES, saying(a=1))
    revision = store.revision
    layers.replace(PUSH, saying(a=2))

    assert store.resolved("a").minimum_prefix_tokens == 1
    assert store.revision == revision


def test_absence_hides_nothing(layers: PolicyLayers, store: PolicyStore) -> None:
    """A source that takes back its word leaves the other's in force, also if that is older."""
    layers.replace(FILES, saying(a=1))
    layers.replace(PUSH, saying(a=2))

    assert layers.replace(PUSH, NOTHING) == Replacement(
        policies=0, quotas=0, policies_removed=1, quotas_removed=1
    )
    assert store.resolved("a").minimum_prefix_tokens == 1
    assert store.quota("a") == 1


def test_what_neither_says_any_more_is_gone(layers: PolicyLayers, store: PolicyStore) -> None:
    """Once both layers are silent the defaults hold."""
    layers.replace(FILES, saying(a=1))
    layers.replace(PUSH, saying(a=2))
    layers.replace(FILES, NOTHING)
    layers.replace(PUSH, NOTHING)

    assert store.resolved("a").minimum_prefix_tokens == 0
    assert store.quota("a") is None
    assert layers.view().policies == ()


def test_the_view_shows_both(layers: PolicyLayers) -> None:
    """Whoever wonders why a value does not count sees the one that does beside it."""
    layers.replace(FILES, saying(a=1, b=1))
    layers.replace(PUSH, saying(b=2))

    view = layers.view()

    assert view.revision == 2
    assert view.policies == (
        LayeredPolicy(tenant_id="a", in_force=FILES, files=saying(a=1).policies[0], push=None),
        LayeredPolicy(
            tenant_id="b",
            in_force=PUSH,
            files=saying(b=1).policies[0],
            push=saying(b=2).policies[0],
        ),
    )
    assert [row.tenant_id for row in view.quotas] == ["a", "b"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(PolicyLayer),
            st.dictionaries(st.sampled_from("abc"), st.integers(1, 2)),
        ),
        max_size=12,
    )
)
def test_the_history_decides_as_told(history: list[tuple[PolicyLayer, dict[str, int]]]) -> None:
    """Replaying the rule word by word gives what is in force."""
    store = PolicyStore(PolicySettings(), 1)
    layers = PolicyLayers(store)
    said: dict[PolicyLayer, dict[str, int]] = {FILES: {}, PUSH: {}}
    changed: dict[tuple[PolicyLayer, str], int] = {}
    for moment, (layer, words) in enumerate(history):
        for tenant_id, number in words.items():
            if said[layer].get(tenant_id) != number:
                changed[layer, tenant_id] = moment
        said[layer] = words
        layers.replace(layer, saying(**words))
        for tenant_id in "abc":
            speaking = [layer for layer in PolicyLayer if tenant_id in said[layer]]
            latest = max(speaking, key=lambda layer: changed[layer, tenant_id], default=None)
            expected = said[latest][tenant_id] if latest else 0
            assert store.resolved(tenant_id).minimum_prefix_tokens == expected
