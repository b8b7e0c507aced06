"""InferencePool: worker sets and providers that a request can name together."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, cast

from inferencecache.resources.kind import AGE, Column, ResourceKind, Rule
from inferencecache.resources.member_states import (
    POOL,
    PROVIDER,
    PROVIDER_GROUP,
    WORKER_SET,
    MemberState,
    provider_states,
    worker_set_states,
)
from inferencecache.resources.model import LoadState, ObjectKey, ObjectState, ResourceObject
from inferencecache.resources.pool_spec import (
    InferencePoolSpec,
    InferencePoolStatus,
    check_members,
    check_tiers,
    members_of,
)
from inferencecache.resources.provider_spec import InferenceProviderSpec
from inferencecache.resources.settle import SLICE_OBJECTS
from inferencecache.resources.worker_set_spec import InferenceWorkerSetSpec


class PoolState(StrEnum):
    """What becomes of a pool."""

    ACCEPTED = "Accepted"
    """Every member that it names can be picked."""
    INCOMPLETE = "Incomplete"
    """It names no member."""
    MEMBERS_MISSING = "MembersMissing"
    """It names members that are not there or not accepted; the others are picked."""
    PROFILE_MISSING = "ProfileMissing"
    """A tier is ranked by a profile that the plugins do not have; times rank it. The objects alone
    do not tell."""


def accepted_members(load: LoadState) -> Iterator[ObjectKey | None]:
    """Yield each worker set and provider that can be picked, and None now and then as a pause.

    Args:
        load: The objects in force.
    """
    providers = cast("list[ResourceObject[InferenceProviderSpec]]", list(load.of_kind(PROVIDER)))
    sets = cast("list[ResourceObject[InferenceWorkerSetSpec]]", list(load.of_kind(WORKER_SET)))
    for states in (worker_set_states(sets, load), provider_states(providers, load)):
        for named in states:
            if named is None:
                yield None
            elif named[1].name == MemberState.ACCEPTED:
                yield named[0]


def _assess(
    objects: Sequence[ResourceObject[InferencePoolSpec]], load: LoadState
) -> Iterator[tuple[ObjectKey, ObjectState] | None]:
    accepted: set[ObjectKey] = set()
    for key in accepted_members(load):
        if key is None:
            yield None
        else:
            accepted.add(key)
    for count, found in enumerate(objects):
        if not count % SLICE_OBJECTS:
            yield None
        yield found.key, _state(found, accepted, load)


def _state(
    found: ResourceObject[InferencePoolSpec], accepted: set[ObjectKey], load: LoadState
) -> ObjectState:
    members = members_of(found.spec, found.key.namespace)
    if not members:
        return ObjectState(PoolState.INCOMPLETE, "Incomplete", "there is no member")
    out = next((key for key in members if key not in accepted), None)
    if out is None:
        return ObjectState(PoolState.ACCEPTED)
    if out in load.objects:
        return ObjectState(PoolState.MEMBERS_MISSING, "NotAccepted", f"{out} is not accepted")
    return ObjectState(PoolState.MEMBERS_MISSING, "NotFound", f"there is no {out}")


INFERENCE_POOL: Final = ResourceKind(
    kind=POOL,
    plural="inferencepools",
    short_names=("infpool",),
    description="Worker sets and providers that are picked from together, and in which order.",
    spec=InferencePoolSpec,
    status=InferencePoolStatus,
    columns=(
        Column(
            name="Members",
            type="integer",
            path=".status.members",
            description="How many members are accepted.",
        ),
        Column(
            name="Tiers",
            type="integer",
            path=".status.tiers",
            description="How many tiers there are.",
        ),
        Column(
            name="State",
            type="string",
            path=".status.state",
            description="What became of it.",
        ),
        AGE,
        Column(
            name="Default-Model",
            type="string",
            path=".spec.defaultModel",
            description="What stands in where a body names no model.",
            is_wide=True,
        ),
    ),
    rules=(
        Rule(path="spec.members", cel="", message="", check=check_members),
        Rule(
            path="spec.tiers",
            cel="self.all(tier, (has(tier.rankBy) && tier.rankBy == 'Profile') == "
            "has(tier.profile))",
            message="profile belongs to rankBy Profile",
            check=check_tiers,
        ),
    ),
    assess=_assess,
    other_api_versions=(f"{PROVIDER_GROUP}/v1alpha1",),
)
