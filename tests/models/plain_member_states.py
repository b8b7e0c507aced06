"""What becomes of providers and worker sets, told again from the rules and with no thought of cost.

Objects are plain tuples, so that nothing of the product's own is used.
"""

from typing import NamedTuple


class Ref(NamedTuple):
    """A member as a pool names it."""

    kind: str
    namespace: str
    name: str


class PlainProvider(NamedTuple):
    """A provider; ``backend`` is the namespace of its backend, empty for its own."""

    namespace: str
    name: str
    api: str
    has_backend: bool
    has_model: bool
    backend: str


class PlainSet(NamedTuple):
    """A worker set."""

    namespace: str
    name: str
    has_model: bool
    has_endpoint: bool


class PlainGrant(NamedTuple):
    """Lets providers of one namespace use backends of another one."""

    namespace: str
    from_namespace: str


class World(NamedTuple):
    """Everything there is; a pool is the tuple of its members, in order."""

    providers: tuple[PlainProvider, ...]
    sets: tuple[PlainSet, ...]
    pools: tuple[tuple[Ref, ...], ...]
    grants: tuple[PlainGrant, ...]


def ref_of(found: PlainProvider | PlainSet) -> Ref:
    """Return how a pool names *found*."""
    kind = "InferenceProvider" if isinstance(found, PlainProvider) else "InferenceWorkerSet"
    return Ref(kind, found.namespace, found.name)


def provider_state(world: World, found: PlainProvider) -> str:
    """Return the state of one provider."""
    if found.api not in {"", "OpenAI"}:
        return "UnsupportedApiFormat"
    if not (found.has_backend and found.api and found.has_model):
        return "Incomplete"
    elsewhere = found.backend or found.namespace
    is_granted = PlainGrant(elsewhere, found.namespace) in world.grants
    if elsewhere != found.namespace and not is_granted:
        return "CrossNamespaceNotGranted"
    me, sets = ref_of(found), {ref_of(one) for one in world.sets}
    for pool in world.pools:
        rivals = [one for one in pool if one in sets and one.name == found.name]
        if me in pool and rivals:
            return "AmbiguousName"
    twin = me._replace(kind="InferenceWorkerSet")
    is_outside = not any(one in pool for pool in world.pools for one in (me, twin))
    return "AmbiguousName" if is_outside and twin in sets else "Accepted"


def set_state(world: World, found: PlainSet) -> str:
    """Return the state of one worker set."""
    if not (found.has_model and found.has_endpoint):
        return "Incomplete"
    me, sets = ref_of(found), {ref_of(one) for one in world.sets}
    for pool in world.pools:
        named = [one for one in pool if one in sets and one.name == found.name]
        if me in named and named[0] != me:
            return "AmbiguousName"
    return "Accepted"
