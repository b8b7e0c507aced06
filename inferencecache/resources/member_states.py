"""What becomes of worker sets and providers: whether they can be picked, and why not.

Rules of this file
    1. Only what is Accepted is picked. Whatever is wrong here is a state and no error: the object
       is there and says what it lacks.
    2. A provider has the first of these that holds: UnsupportedApiFormat, Incomplete,
       CrossNamespaceNotGranted, AmbiguousName.
    3. A name is ambiguous in a pool, not in the world. What no pool names counts as one more pool,
       in which names are told apart by their namespaces.
    4. Of a worker set and a provider of one name the worker set is picked; of two worker sets of
       one name in a pool, the one that the pool names first.
"""

from collections.abc import Generator, Iterator, Sequence
from enum import StrEnum
from typing import Final, cast

from inferencecache.resources.endpoints_file import endpoints_in
from inferencecache.resources.model import LoadState, ObjectKey, ObjectState, ResourceObject
from inferencecache.resources.pool_spec import InferencePoolSpec, members_of
from inferencecache.resources.provider_spec import (
    BACKEND_GROUP,
    BACKEND_KIND,
    SUPPORTED_API,
    InferenceProviderSpec,
)
from inferencecache.resources.reference_grant import REFERENCE_GRANT, Grants, Reference
from inferencecache.resources.settle import SLICE_OBJECTS
from inferencecache.resources.worker_set_spec import InferenceWorkerSetSpec

POOL: Final = "InferencePool"
PROVIDER: Final = "InferenceProvider"
WORKER_SET: Final = "InferenceWorkerSet"
PROVIDER_GROUP: Final = "kinference.buoyant.io"

States = Iterator[tuple[ObjectKey, ObjectState] | None]


class MemberState(StrEnum):
    """The first word of a state."""

    ACCEPTED = "Accepted"
    """Well-formed, and to be picked."""
    UNSUPPORTED_API_FORMAT = "UnsupportedApiFormat"
    """Its API is another than the one that is spoken."""
    INCOMPLETE = "Incomplete"
    """It lacks what nobody can pick it without."""
    CROSS_NAMESPACE_NOT_GRANTED = "CrossNamespaceNotGranted"
    """Its backend is in another namespace, and no ReferenceGrant there allows that."""
    AMBIGUOUS_NAME = "AmbiguousName"
    """A worker set of the same pool has its name."""


_ACCEPTED: Final = ObjectState(MemberState.ACCEPTED)


def provider_states(
    objects: Sequence[ResourceObject[InferenceProviderSpec]], load: LoadState
) -> States:
    """Yield the state of each provider.

    Complexity: O(n) in the objects of all kinds and the members of all pools.
    """
    grants = Grants(REFERENCE_GRANT.objects_in(load))
    yield None
    ambiguous = yield from _ambiguous(load)
    for count, found in enumerate(objects):
        if not count % SLICE_OBJECTS:
            yield None
        yield found.key, _provider_state(found, grants, ambiguous)


def _provider_state(
    found: ResourceObject[InferenceProviderSpec],
    grants: Grants,
    ambiguous: dict[ObjectKey, ObjectKey],
) -> ObjectState:
    spec, namespace = found.spec, found.key.namespace
    if spec.api and spec.api != SUPPORTED_API:
        return ObjectState(
            MemberState.UNSUPPORTED_API_FORMAT,
            "UnsupportedApi",
            f"spec.api must be {SUPPORTED_API}",
        )
    lacking = _lacking(spec)
    if lacking:
        return ObjectState(MemberState.INCOMPLETE, "Incomplete", f"there is no {lacking}")
    reference = backend_of(spec, namespace)
    if reference.namespace != namespace and not grants.allow(reference):
        return ObjectState(
            MemberState.CROSS_NAMESPACE_NOT_GRANTED,
            "RefNotPermitted",
            f"no ReferenceGrant in {reference.namespace} allows this reference",
        )
    return _named(found.key, ambiguous)


def _lacking(spec: InferenceProviderSpec) -> str:
    """Return what a provider lacks, empty for nothing."""
    if spec.backend_ref is None or not spec.backend_ref.name:
        return "spec.backendRef.name"
    if not spec.api:
        return "spec.api"
    return "" if any(row.name for row in spec.models or ()) else "row in spec.models with a name"


def backend_of(spec: InferenceProviderSpec, namespace: str) -> Reference:
    """Return what a provider points to, with all that it leaves out filled in.

    Args:
        spec: The provider's.
        namespace: Where the provider stands.
    """
    ref = spec.backend_ref
    group = BACKEND_GROUP if ref is None or ref.group is None else ref.group
    return Reference(
        from_group=PROVIDER_GROUP,
        from_kind=PROVIDER,
        from_namespace=namespace,
        group=group,
        kind=(ref and ref.kind) or BACKEND_KIND,
        namespace=(ref and ref.namespace) or namespace,
        name=(ref and ref.name) or "",
    )


def worker_set_states(
    objects: Sequence[ResourceObject[InferenceWorkerSetSpec]], load: LoadState
) -> States:
    """Yield the state of each worker set.

    Complexity: O(n) in the objects of all kinds and the members of all pools.
    """
    ambiguous = yield from _ambiguous(load)
    for count, found in enumerate(objects):
        if not count % SLICE_OBJECTS:
            yield None
        yield found.key, _worker_set_state(found, load, ambiguous)


def _worker_set_state(
    found: ResourceObject[InferenceWorkerSetSpec],
    load: LoadState,
    ambiguous: dict[ObjectKey, ObjectKey],
) -> ObjectState:
    spec = found.spec
    if not any(row.name for row in spec.models or ()):
        lacking = "row in spec.models with a name"
    elif spec.endpoints_file is None:
        lacking = "" if spec.endpoints else "endpoint"
    elif endpoints_in(load, spec.endpoints_file) is None:
        lacking = f"file {spec.endpoints_file} that could be read"
    else:
        lacking = "" if endpoints_in(load, spec.endpoints_file) else "endpoint"
    if lacking:
        return ObjectState(MemberState.INCOMPLETE, "Incomplete", f"there is no {lacking}")
    return _named(found.key, ambiguous)


def _named(key: ObjectKey, ambiguous: dict[ObjectKey, ObjectKey]) -> ObjectState:
    other = ambiguous.get(key)
    if other is None:
        return _ACCEPTED
    return ObjectState(
        MemberState.AMBIGUOUS_NAME, "SameName", f"{other} is in the same pool and has this name"
    )


def _ambiguous(load: LoadState) -> Generator[None, None, dict[ObjectKey, ObjectKey]]:
    """Return each member whose name is taken in one of its pools, and by which worker set."""
    taken: dict[ObjectKey, ObjectKey] = {}
    named: set[ObjectKey] = set()
    for count, pool in enumerate(load.of_kind(POOL)):
        if not count % SLICE_OBJECTS:
            yield
        spec = cast("InferencePoolSpec", pool.spec)
        members = [key for key in members_of(spec, pool.key.namespace) if key in load.objects]
        named.update(members)
        taken |= _taken_among(members)
    yield
    for found in load.of_kind(PROVIDER):
        twin = found.key._replace(kind=WORKER_SET)
        if twin in load.objects and not named & {twin, found.key}:
            taken[found.key] = twin
    yield
    return taken


def _taken_among(members: list[ObjectKey]) -> dict[ObjectKey, ObjectKey]:
    """Return those of a pool's *members* whose name is taken, and by which worker set."""
    first: dict[str, ObjectKey] = {}
    for key in members:
        if key.kind == WORKER_SET:
            first.setdefault(key.name, key)
    return {key: first[key.name] for key in members if first.get(key.name, key) != key}
