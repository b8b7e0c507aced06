"""CachePolicy: what the tenant of a namespace wants of its lookups."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta

from inferencecache.resources.flaw import Flaw, shown
from inferencecache.resources.kind import AGE, Column, ResourceKind, Rule
from inferencecache.resources.model import (
    LoadState,
    ObjectKey,
    ObjectState,
    ResourceObject,
    StateName,
)
from inferencecache.resources.models import Conditions, ObservedGeneration, ResourceModel
from inferencecache.resources.settle import SLICE_OBJECTS
from inferencecache.settings.duration import parse_duration
from inferencecache.settings.policy import PolicySettings
from inferencecache.types import INT32_MAX

_DEFAULTS: Final = PolicySettings()
_DURATION_PATTERN: Final = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+\Z"
_DECIMAL_PATTERN: Final = r"^(0|[1-9][0-9]{0,7})(\.[0-9]{1,6})?\Z"


def _flag(default: bool, description: str) -> Meta:  # noqa: FBT001 - a value, not a switch
    """Describe a boolean."""
    return Meta(description=description, extra_json_schema={"default": default})


def _count(description: str, **more: object) -> Meta:
    """Describe a 32-bit number from 0."""
    return Meta(
        ge=0,
        le=INT32_MAX,
        description=description,
        extra_json_schema={"format": "int32", **more},
    )


class StrategySpec(ResourceModel, frozen=True, kw_only=True):
    """Which ways of answering a lookup are open."""

    enable_chain_matching: (
        Annotated[bool, _flag(_DEFAULTS.chain_matching, "Match prompts block by block.")] | None
    ) = None
    require_chain: (
        Annotated[
            bool,
            _flag(
                _DEFAULTS.require_chain,
                "Answer lookups without a block chain with POLICY_REQUIRES_CHAIN.",
            ),
        ]
        | None
    ) = None
    enable_tenant_hot: (
        Annotated[
            bool,
            _flag(_DEFAULTS.tenant_hot, "Answer an exact miss with the tenant's warm replicas."),
        ]
        | None
    ) = None


class CachePolicySpec(ResourceModel, frozen=True, kw_only=True):
    """What is left out is decided by the server's own settings."""

    eviction: (
        Annotated[
            Literal["LRU", "LFU"],
            Meta(
                description="How the cap chooses victims among this tenant's entries.",
                extra_json_schema={"default": "LRU"},
            ),
        ]
        | None
    ) = None
    eviction_ttl: (
        Annotated[
            str,
            Meta(
                max_length=64,
                pattern=_DURATION_PATTERN,
                description="Lifetime of an entry that is not reported again, above 0.",
                extra_json_schema={"example": "30m"},
            ),
        ]
        | None
    ) = None
    minimum_prefix_tokens: (
        Annotated[int, _count("Shortest prompt worth a lookup, in tokens; 0 accepts any.")] | None
    ) = None
    minimum_matched_tokens: (
        Annotated[
            int,
            _count(
                "Shortest match worth a hint, in tokens; 0 accepts any.",
                default=_DEFAULTS.minimum_matched_tokens,
            ),
        ]
        | None
    ) = None
    routing_floor_score: (
        Annotated[
            str,
            Meta(
                pattern=_DECIMAL_PATTERN,
                description="Smallest best score worth a hint, a decimal text; 0 accepts any.",
                extra_json_schema={
                    "default": str(_DEFAULTS.routing_floor_score),
                    "example": "0.1",
                },
            ),
        ]
        | None
    ) = None
    lookup_timeout_ms: (
        Annotated[int, _count("Time budget of a lookup, in milliseconds; 0 means none.")] | None
    ) = None
    strategy: StrategySpec | None = None
    affinity_routing: (
        Annotated[
            Literal["Enabled", "Disabled"],
            Meta(
                description="Whether unknown prompts are spread by their hash.",
                extra_json_schema={
                    "default": "Enabled" if _DEFAULTS.affinity_routing else "Disabled"
                },
            ),
        ]
        | None
    ) = None


class CachePolicyStatus(ResourceModel, frozen=True, kw_only=True):
    """Written by nobody yet."""

    observed_generation: ObservedGeneration | None = None
    conditions: Conditions | None = None


def ttl_ns_of(spec: CachePolicySpec) -> int:
    """Return the lifetime of entries in nanoseconds, 0 where the policy names none.

    Raises:
        ValueError: It is longer than 292 years.
    """
    return parse_duration(spec.eviction_ttl) if spec.eviction_ttl is not None else 0


def _check_ttl(spec: CachePolicySpec) -> Flaw | None:
    try:
        is_right = spec.eviction_ttl is None or ttl_ns_of(spec) > 0
    except ValueError:
        is_right = False
    if is_right:
        return None
    return Flaw(
        field="spec.evictionTTL",
        value=shown(spec.eviction_ttl),
        allowed="a duration above 0 and of at most 292 years",
    )


def _check_strategy(spec: CachePolicySpec) -> Flaw | None:
    strategy = spec.strategy
    if (
        strategy is None
        or not strategy.require_chain
        or strategy.enable_chain_matching is not False
    ):
        return None
    return Flaw(
        field="spec.strategy.requireChain",
        value=shown(strategy.require_chain),
        allowed="false while enableChainMatching is false",
    )


def _shadow(
    objects: Sequence[ResourceObject[CachePolicySpec]], _load: LoadState
) -> Iterator[tuple[ObjectKey, ObjectState] | None]:
    """Name the policies that another one of their namespace comes before."""
    first: ObjectKey | None = None
    for count, found in enumerate(objects):
        if not count % SLICE_OBJECTS:
            yield None
        if first is not None and first.namespace == found.key.namespace:
            yield (
                found.key,
                ObjectState(
                    StateName.SHADOWED,
                    "SecondPolicyInNamespace",
                    f"{first.name} comes first in the namespace and is the one in force",
                ),
            )
        else:
            first = found.key


CACHE_POLICY: Final = ResourceKind(
    kind="CachePolicy",
    plural="cachepolicies",
    short_names=("cpol",),
    description="How lookups of the tenant with the name of this namespace are answered, and "
    "how long its entries live. Of several in one namespace the first by name is in force.",
    spec=CachePolicySpec,
    status=CachePolicyStatus,
    columns=(
        Column(
            name="Eviction",
            type="string",
            path=".spec.eviction",
            description="How the cap chooses victims.",
        ),
        AGE,
    ),
    rules=(
        Rule(
            path="spec.evictionTTL",
            cel="duration(self) > duration('0s')",
            message="evictionTTL must be above 0",
            check=_check_ttl,
        ),
        Rule(
            path="spec.strategy",
            cel="!(has(self.requireChain) && self.requireChain) || "
            "!has(self.enableChainMatching) || self.enableChainMatching",
            message="requireChain needs enableChainMatching",
            check=_check_strategy,
        ),
    ),
    assess=_shadow,
)
