"""Worker sets, providers and pools as resource documents, and what comes of loading them."""

from collections.abc import Generator
from typing import TypeVar

from resource_texts import document, load

from inferencecache.picker.fleet import Fleet
from inferencecache.resources import LoadState, ObjectState
from inferencecache.service.picker_resources import fleet_slices
from inferencecache.settings.fleet import FleetSettings

ResultT = TypeVar("ResultT")

GROUP = "kinference.buoyant.io/v1alpha1"
OURS = "inferencecache.io/v1alpha1"
BACKEND = "backendRef: {name: databricks}"
MODELS = "models: [{name: qwen-32b, aliases: [qwen]}]"
ENDPOINTS = "endpoints: [{name: a, address: '10.0.0.1:8000'}]"
PROVIDER = f"{{{BACKEND}, api: OpenAI, {MODELS}}}"
WORKER_SET = f"{{{MODELS}, {ENDPOINTS}}}"


def provider(spec: str = PROVIDER, name: str = "p", namespace: str = "default") -> str:
    """Return an InferenceProvider."""
    return document("InferenceProvider", name, spec, namespace=namespace).replace(OURS, GROUP)


def worker_set(spec: str = WORKER_SET, name: str = "w", namespace: str = "default") -> str:
    """Return an InferenceWorkerSet."""
    return document("InferenceWorkerSet", name, spec, namespace=namespace)


def pool(spec: str, name: str = "pool", namespace: str = "default") -> str:
    """Return an InferencePool."""
    return document("InferencePool", name, spec, namespace=namespace)


def pool_of(*members: str, name: str = "pool", namespace: str = "default") -> str:
    """Return a pool whose members are written ``InferenceProvider/name`` or with a namespace."""
    refs = []
    for member in members:
        kind, *where, called = member.split("/")
        refs.append(f"{{kind: {kind}, name: {called}" + "".join(f", namespace: {n}" for n in where))
    return pool(f"{{members: [{'}, '.join(refs)}}}]}}", name, namespace)


def grant(
    from_namespace: str = "default",
    *,
    namespace: str = "gateways",
    from_: str = "",
    to: str = "{group: gateway.linkerd.io, kind: GatewayBackend}",
) -> str:
    """Return a ReferenceGrant."""
    source = from_ or (
        f"{{group: kinference.buoyant.io, kind: InferenceProvider, namespace: {from_namespace}}}"
    )
    text = document("ReferenceGrant", "g", f"{{from: [{source}], to: [{to}]}}", namespace=namespace)
    return text.replace(OURS, "gateway.networking.k8s.io/v1beta1")


def joined(*texts: str) -> dict[str, str | bytes]:
    """Return files with one document each."""
    return {f"{place}.yaml": text for place, text in enumerate(texts)}


def state_of(state: LoadState, kind: str, name: str) -> ObjectState:
    """Return what became of the one object of this kind and name."""
    (found,) = [key for key in state.objects if (key.kind, key.name) == (kind, name)]
    return state.states[found]


def result_of(steps: Generator[None, None, ResultT]) -> ResultT:
    """Return the result of *steps* without pauses."""
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            result: ResultT = finished.value
            return result


def fleet_of(*texts: str, settings: FleetSettings | None = None) -> Fleet:
    """Return the fleet of documents without mistakes."""
    state = load(joined(*texts))
    assert not state.errors
    return result_of(fleet_slices(state, settings or FleetSettings()))
