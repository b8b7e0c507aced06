"""For any providers, worker sets, pools and grants, states are those that the rules say."""

from hypothesis import given
from hypothesis import strategies as st
from picker_texts import grant, joined, pool_of, provider, worker_set
from plain_member_states import (
    PlainGrant,
    PlainProvider,
    PlainSet,
    Ref,
    World,
    provider_state,
    set_state,
)
from resource_texts import load

NAMESPACES = ("x", "y")
NAMES = ("a", "b")

namespaces, names = st.sampled_from(NAMESPACES), st.sampled_from(NAMES)
providers = st.builds(
    PlainProvider,
    namespace=namespaces,
    name=names,
    api=st.sampled_from(["OpenAI", "OpenAI", "OpenAI", "", "Other"]),
    has_backend=st.sampled_from([True, True, True, False]),
    has_model=st.sampled_from([True, True, True, False]),
    backend=st.sampled_from(["", *NAMESPACES]),
)
sets = st.builds(
    PlainSet,
    namespace=namespaces,
    name=names,
    has_model=st.sampled_from([True, True, True, False]),
    has_endpoint=st.sampled_from([True, True, True, False]),
)
refs = st.builds(
    Ref,
    kind=st.sampled_from(["InferenceProvider", "InferenceWorkerSet"]),
    namespace=namespaces,
    name=names,
)
grants = st.builds(PlainGrant, namespace=namespaces, from_namespace=namespaces)
worlds = st.builds(
    World,
    providers=st.lists(providers, unique_by=lambda one: one[:2], max_size=4).map(tuple),
    sets=st.lists(sets, unique_by=lambda one: one[:2], max_size=4).map(tuple),
    pools=st.lists(st.lists(refs, unique=True, max_size=5).map(tuple), max_size=3).map(tuple),
    grants=st.lists(grants, unique=True, max_size=2).map(tuple),
)


def provider_text(found: PlainProvider) -> str:
    """Return the provider as a document."""
    where = f", namespace: {found.backend}" if found.backend else ""
    members = [
        f"backendRef: {{name: b{where}}}" if found.has_backend else "",
        f"api: {found.api}" if found.api else "",
        "models: [{name: m}]" if found.has_model else "models: [{aliases: [m]}]",
    ]
    spec = ", ".join(filter(None, members))
    return provider(f"{{{spec}}}", name=found.name, namespace=found.namespace)


def set_text(found: PlainSet) -> str:
    """Return the worker set as a document."""
    models = "models: [{name: m}]" if found.has_model else "models: []"
    endpoints = "endpoints: [{name: e, address: 'h:1'}]" if found.has_endpoint else "endpoints: []"
    return worker_set(f"{{{models}, {endpoints}}}", name=found.name, namespace=found.namespace)


def texts_of(world: World) -> list[str]:
    """Return everything as documents; names of pools and grants do not matter, order does."""
    pools = [
        pool_of(*("/".join(ref) for ref in pool), name=f"pool-{place}")
        for place, pool in enumerate(world.pools)
    ]
    granted = [
        grant(one.from_namespace, namespace=one.namespace).replace("name: g,", f"name: g{place},")
        for place, one in enumerate(world.grants)
    ]
    return [
        *map(provider_text, world.providers),
        *map(set_text, world.sets),
        *(text.replace("[}]", "[]") for text in pools),
        *granted,
    ]


@given(worlds)
def test_states_are_those_of_the_rules(world: World) -> None:
    """The product and a plain model say the same of every object."""
    state = load(joined(*texts_of(world)))
    assert not state.errors
    found = {
        (key.kind, key.namespace, key.name): said.name
        for key, said in state.states.items()
        if key.kind in {"InferenceProvider", "InferenceWorkerSet"}
    }
    expected = {
        ("InferenceProvider", one.namespace, one.name): provider_state(world, one)
        for one in world.providers
    } | {
        ("InferenceWorkerSet", one.namespace, one.name): set_state(world, one) for one in world.sets
    }
    assert found == expected
