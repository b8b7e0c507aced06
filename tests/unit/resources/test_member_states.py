"""Each state of a provider, a worker set and a pool, and what brings it about."""

import pytest
from picker_texts import (
    BACKEND,
    ENDPOINTS,
    MODELS,
    grant,
    joined,
    pool,
    pool_of,
    provider,
    state_of,
    worker_set,
)
from resource_texts import load

CROSSING = f"{{backendRef: {{name: b, namespace: gateways}}, api: OpenAI, {MODELS}}}"


def provider_state(*texts: str, name: str = "p") -> tuple[str, str]:
    """Return state and message of the provider after loading *texts* without an error."""
    state = load(joined(*texts))
    assert not state.errors
    found = state_of(state, "InferenceProvider", name)
    return found.name, found.message


def set_state(*texts: str, name: str = "w") -> tuple[str, str]:
    """Return state and message of the worker set after loading *texts* without an error."""
    state = load(joined(*texts))
    assert not state.errors
    found = state_of(state, "InferenceWorkerSet", name)
    return found.name, found.message


def pool_state(*texts: str) -> tuple[str, str, str]:
    """Return the state of the pool after loading *texts* without an error."""
    state = load(joined(*texts))
    assert not state.errors
    found = state_of(state, "InferencePool", "pool")
    return found.name, found.reason, found.message


def test_a_whole_provider_is_accepted() -> None:
    """With or without a pool."""
    assert provider_state(provider()) == ("Accepted", "")
    assert provider_state(provider(), pool_of("InferenceProvider/p")) == ("Accepted", "")


@pytest.mark.parametrize("api", ["Anthropic", "openai", "OpenAI "])
def test_another_api_is_a_state_and_no_error(api: str) -> None:
    """The object is there, and is refused."""
    text = provider(f"{{{BACKEND}, api: '{api}', {MODELS}}}")
    assert provider_state(text) == ("UnsupportedApiFormat", "spec.api must be OpenAI")


def test_another_api_is_told_before_what_lacks() -> None:
    """What can never work comes first."""
    assert provider_state(provider("{api: Anthropic}"))[0] == "UnsupportedApiFormat"


@pytest.mark.parametrize(
    ("spec", "lacking"),
    [
        (f"{{api: OpenAI, {MODELS}}}", "spec.backendRef.name"),
        (f"{{backendRef: {{}}, api: OpenAI, {MODELS}}}", "spec.backendRef.name"),
        (f"{{backendRef: {{name: ''}}, api: OpenAI, {MODELS}}}", "spec.backendRef.name"),
        (f"{{{BACKEND}, {MODELS}}}", "spec.api"),
        (f"{{{BACKEND}, api: '', {MODELS}}}", "spec.api"),
        (f"{{{BACKEND}, api: ~, {MODELS}}}", "spec.api"),
        (f"{{{BACKEND}, api: OpenAI}}", "row in spec.models with a name"),
        (f"{{{BACKEND}, api: OpenAI, models: []}}", "row in spec.models with a name"),
        (
            f"{{{BACKEND}, api: OpenAI, models: [{{aliases: [a]}}, {{name: ''}}]}}",
            "row in spec.models with a name",
        ),
        ("{}", "spec.backendRef.name"),
    ],
)
def test_what_lacks_something_is_incomplete(spec: str, lacking: str) -> None:
    """And says what."""
    assert provider_state(provider(spec)) == ("Incomplete", f"there is no {lacking}")


def test_one_row_with_a_name_is_enough() -> None:
    """The others do not count."""
    rows = "models: [{aliases: [x]}, {name: a}]"
    assert provider_state(provider(f"{{{BACKEND}, api: OpenAI, {rows}}}")) == ("Accepted", "")


def test_another_namespace_needs_a_grant() -> None:
    """Without one, the reference counts for nothing."""
    name, message = provider_state(provider(CROSSING))
    assert name == "CrossNamespaceNotGranted"
    assert message == "no ReferenceGrant in gateways allows this reference"


def test_the_own_namespace_needs_no_grant() -> None:
    """Whether it is named or not."""
    text = CROSSING.replace("gateways", "default")
    assert provider_state(provider(text)) == ("Accepted", "")


@pytest.mark.parametrize("version", ["v1beta1", "v1", "v1alpha2"])
@pytest.mark.parametrize(
    "to",
    [
        "{group: gateway.linkerd.io, kind: GatewayBackend}",
        "{group: gateway.linkerd.io, kind: GatewayBackend, name: b}",
        "{group: '', kind: Secret}, {group: gateway.linkerd.io, kind: GatewayBackend, name: b}",
    ],
)
def test_a_grant_allows_it(to: str, version: str) -> None:
    """For every backend there or for one, in each version of the Gateway API."""
    text = grant(to=to).replace("/v1beta1", f"/{version}")
    assert provider_state(provider(CROSSING), text) == ("Accepted", "")


@pytest.mark.parametrize(
    "text",
    [
        grant("other"),
        grant(namespace="default"),
        grant(to="{group: gateway.linkerd.io, kind: GatewayBackend, name: c}"),
        grant(to="{group: gateway.linkerd.io, kind: Service}"),
        grant(to="{group: '', kind: GatewayBackend}"),
        grant(from_="{group: inferencecache.io, kind: InferenceProvider, namespace: default}"),
        grant(from_="{group: kinference.buoyant.io, kind: InferencePool, namespace: default}"),
    ],
)
def test_a_grant_for_something_else_does_not(text: str) -> None:
    """Each part of it must fit."""
    assert provider_state(provider(CROSSING), text)[0] == "CrossNamespaceNotGranted"


def test_the_backends_own_group_and_kind_must_be_granted() -> None:
    """A reference to a Service needs a grant for Services."""
    ref = "backendRef: {group: '', kind: Service, name: b, namespace: gateways}"
    spec = f"{{{ref}, api: OpenAI, {MODELS}}}"
    assert provider_state(provider(spec), grant())[0] == "CrossNamespaceNotGranted"
    granted = grant(to="{group: '', kind: Service}")
    assert provider_state(provider(spec), granted)[0] == "Accepted"


def test_a_worker_set_of_the_same_pool_takes_the_name() -> None:
    """The worker set goes on being picked."""
    texts = (
        provider(name="x"),
        worker_set(name="x"),
        pool_of("InferenceProvider/x", "InferenceWorkerSet/x"),
    )
    name, message = provider_state(*texts, name="x")
    assert name == "AmbiguousName"
    assert message == "InferenceWorkerSet default/x is in the same pool and has this name"
    assert set_state(*texts, name="x") == ("Accepted", "")


def test_what_no_pool_names_is_in_one_pool_too() -> None:
    """There, names are told apart by their namespaces."""
    assert provider_state(provider(name="x"), worker_set(name="x"), name="x")[0] == "AmbiguousName"
    other = worker_set(name="x", namespace="other")
    assert provider_state(provider(name="x"), other, name="x") == ("Accepted", "")


def test_other_pools_keep_their_names() -> None:
    """A name is ambiguous in a pool, not in the world."""
    texts = (
        provider(name="x"),
        worker_set(name="x"),
        pool_of("InferenceProvider/x", name="one"),
        pool_of("InferenceWorkerSet/x", name="two"),
    )
    assert provider_state(*texts, name="x") == ("Accepted", "")


def test_a_name_from_another_namespace_is_ambiguous_in_a_pool() -> None:
    """A pool shows its members by their names."""
    texts = (
        provider(name="x"),
        worker_set(name="x", namespace="other"),
        pool_of("InferenceProvider/x", "InferenceWorkerSet/other/x"),
    )
    assert provider_state(*texts, name="x")[0] == "AmbiguousName"


def test_a_whole_worker_set_is_accepted() -> None:
    """A model and an endpoint are enough."""
    assert set_state(worker_set()) == ("Accepted", "")


@pytest.mark.parametrize(
    ("spec", "lacking"),
    [
        (f"{{{ENDPOINTS}}}", "row in spec.models with a name"),
        (f"{{{ENDPOINTS}, models: [{{aliases: [a]}}]}}", "row in spec.models with a name"),
        (f"{{{MODELS}}}", "endpoint"),
        (f"{{{MODELS}, endpoints: []}}", "endpoint"),
        (
            f"{{{MODELS}, endpointsFile: a.endpoints.yaml}}",
            "file a.endpoints.yaml that could be read",
        ),
    ],
)
def test_a_worker_set_that_lacks_something_is_incomplete(spec: str, lacking: str) -> None:
    """And says what."""
    assert set_state(worker_set(spec)) == ("Incomplete", f"there is no {lacking}")


def test_the_second_worker_set_of_a_name_is_ambiguous() -> None:
    """The pool's first keeps it."""
    texts = (
        worker_set(name="x", namespace="one"),
        worker_set(name="x", namespace="two"),
        pool_of("InferenceWorkerSet/two/x", "InferenceWorkerSet/one/x"),
    )
    state = load(joined(*texts))
    states = {key.namespace: found.name for key, found in state.states.items()}
    assert states == {"one": "AmbiguousName", "two": "Accepted", "default": "MembersMissing"}


def test_a_pool_with_all_its_members_is_accepted() -> None:
    """Whether tiers name them or not."""
    tiers = (
        "{tiers: [{name: t, members: [{kind: InferenceProvider, name: p}]}], "
        "members: [{kind: InferenceWorkerSet, name: w}]}"
    )
    assert pool_state(provider(), worker_set(), pool(tiers)) == ("Accepted", "", "")


def test_a_pool_without_members_is_incomplete() -> None:
    """There is nothing to pick from."""
    assert pool_state(pool("{}"))[0] == "Incomplete"
    assert pool_state(pool("{tiers: [{name: t}]}"))[0] == "Incomplete"


def test_an_absent_member_is_a_state_of_the_pool() -> None:
    """It names which; the others are picked."""
    assert pool_state(pool_of("InferenceProvider/p")) == (
        "MembersMissing",
        "NotFound",
        "there is no InferenceProvider default/p",
    )
    assert pool_state(provider("{}"), pool_of("InferenceProvider/p")) == (
        "MembersMissing",
        "NotAccepted",
        "InferenceProvider default/p is not accepted",
    )


def test_a_member_that_comes_later_makes_the_pool_whole() -> None:
    """States follow the files."""
    before = load({"pool.yaml": pool_of("InferenceProvider/p")})
    after = load({"pool.yaml": pool_of("InferenceProvider/p"), "p.yaml": provider()}, before)
    assert state_of(before, "InferencePool", "pool").name == "MembersMissing"
    assert state_of(after, "InferencePool", "pool").name == "Accepted"


def test_a_bad_change_keeps_the_last_good_provider() -> None:
    """A mistake is an error, and the provider is picked as before."""
    before = load({"p.yaml": provider()})
    after = load({"p.yaml": provider("{api: OpenAI, models: 7}")}, before)
    assert [error.field for error in after.errors] == ["spec.models"]
    assert state_of(after, "InferenceProvider", "p").name == "Accepted"
    (found,) = after.held
    assert found.name == "p"
