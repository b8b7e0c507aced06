"""What an InferencePool asks for."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from msgspec import Meta

from inferencecache.resources.flaw import Flaw, shown
from inferencecache.resources.metadata import NAME_PATTERN, NAMESPACE_PATTERN
from inferencecache.resources.model import ObjectKey
from inferencecache.resources.models import (
    Conditions,
    ObservedGeneration,
    ResourceModel,
    StateText,
)
from inferencecache.resources.served_models import MODEL_CHARS_MAX

_MEMBERS_MAX: Final = 1_024
_TIERS_MAX: Final = 64
_PROFILE: Final = "Profile"


class MemberRefSpec(ResourceModel, frozen=True, kw_only=True):
    """Names a worker set or a provider."""

    kind: Annotated[
        Literal["InferenceWorkerSet", "InferenceProvider"], Meta(description="What it is.")
    ]
    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=253,
            pattern=NAME_PATTERN,
            description="Its name.",
            extra_json_schema={"example": "llama"},
        ),
    ]
    namespace: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=63,
                pattern=NAMESPACE_PATTERN,
                description="Its namespace; the pool's own if left out.",
            ),
        ]
        | None
    ) = None


MemberRefs = Annotated[
    list[MemberRefSpec], Meta(max_length=_MEMBERS_MAX, description="Members, each once.")
]


class TierSpec(ResourceModel, frozen=True, kw_only=True):
    """Members that are tried together."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=63,
            pattern=NAMESPACE_PATTERN,
            description="Its name in the pool.",
            extra_json_schema={"example": "local"},
        ),
    ]
    rank_by: (
        Annotated[
            Literal["EstimatedTTFT", "PredictedTTFT", "Profile"],
            Meta(
                description="By what its candidates are put in order.",
                extra_json_schema={"default": "EstimatedTTFT"},
            ),
        ]
        | None
    ) = None
    profile: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=253,
                description="The scheduling profile, for rankBy Profile.",
            ),
        ]
        | None
    ) = None
    members: MemberRefs | None = None
    max_saturation_percent: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=10_000,
                description="At which share of its members' concurrency it counts as full; "
                "--fleet-max-saturation-percent if left out.",
            ),
        ]
        | None
    ) = None
    explore: (
        Annotated[
            bool,
            Meta(
                description="Now and then send a request to the provider heard of longest ago.",
                extra_json_schema={"default": False},
            ),
        ]
        | None
    ) = None


class InferencePoolSpec(ResourceModel, frozen=True, kw_only=True):
    """Groups worker sets and providers."""

    members: MemberRefs | None = None
    tiers: (
        Annotated[
            list[TierSpec],
            Meta(
                max_length=_TIERS_MAX,
                description="In the order in which they are tried. Members that no tier names "
                "follow: worker sets, then providers.",
            ),
        ]
        | None
    ) = None
    default_model: (
        Annotated[
            str,
            Meta(
                max_length=MODEL_CHARS_MAX,
                description="Stands in where a body names no model.",
            ),
        ]
        | None
    ) = None
    context_overflow: (
        Annotated[
            Literal["Largest", "Reject"],
            Meta(
                description="What becomes of a request that fits no context window: it goes where "
                "most would fit, or nowhere.",
                extra_json_schema={"default": "Largest"},
            ),
        ]
        | None
    ) = None
    spill_to_providers: (
        Annotated[
            bool,
            Meta(
                description="Whether INTERACTIVE requests go on to a provider because the workers "
                "before it are full; --fleet-spill-to-providers if left out.",
            ),
        ]
        | None
    ) = None


class InferencePoolStatus(ResourceModel, frozen=True, kw_only=True):
    """What became of a pool."""

    state: StateText | None = None
    members: Annotated[int, Meta(ge=0, description="How many members are accepted.")] | None = None
    tiers: Annotated[int, Meta(ge=0, description="How many tiers there are.")] | None = None
    observed_generation: ObservedGeneration | None = None
    conditions: Conditions | None = None


def member_key(ref: MemberRefSpec, namespace: str) -> ObjectKey:
    """Return which object *ref* means in a pool of *namespace*."""
    return ObjectKey(ref.kind, ref.namespace or namespace, ref.name)


def members_of(spec: InferencePoolSpec, namespace: str) -> dict[ObjectKey, None]:
    """Return every object that the pool names, each once, those of its tiers first.

    Args:
        spec: The pool's.
        namespace: Where the pool stands.
    """
    refs = [ref for tier in spec.tiers or () for ref in tier.members or ()]
    return dict.fromkeys(member_key(ref, namespace) for ref in (*refs, *(spec.members or ())))


def check_tiers(spec: InferencePoolSpec) -> Flaw | None:
    """Return what is wrong with the tiers, the first thing only."""
    return next(_tier_flaws(spec), None)


def _tier_flaws(spec: InferencePoolSpec) -> Iterator[Flaw]:
    names: set[str] = set()
    members: set[tuple[str, str, str | None]] = set()
    for place, tier in enumerate(spec.tiers or ()):
        at = f"spec.tiers[{place}]"
        if tier.name in names:
            yield Flaw(field=f"{at}.name", value=shown(tier.name), allowed="each name once")
        names.add(tier.name)
        if (tier.rank_by == _PROFILE) != (tier.profile is not None):
            yield Flaw(
                field=f"{at}.profile",
                value="nothing" if tier.profile is None else shown(tier.profile),
                allowed=f"the name of a profile exactly where rankBy is {_PROFILE}",
            )
        yield from _repeated_members(tier.members or [], f"{at}.members", members)


def check_members(spec: InferencePoolSpec) -> Flaw | None:
    """Return what is wrong if a member is listed twice."""
    return next(_repeated_members(spec.members or [], "spec.members", set()), None)


def _repeated_members(
    refs: list[MemberRefSpec], at: str, seen: set[tuple[str, str, str | None]]
) -> Iterator[Flaw]:
    for place, ref in enumerate(refs):
        key = (ref.kind, ref.name, ref.namespace)
        if key in seen:
            yield Flaw(
                field=f"{at}[{place}].name", value=shown(ref.name), allowed="each member once"
            )
        seen.add(key)
