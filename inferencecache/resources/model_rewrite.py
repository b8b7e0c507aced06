"""ModelRewrite: which model stands in for the one that a client asks for."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta

from inferencecache.resources.flaw import Flaw
from inferencecache.resources.kind import AGE, Column, ResourceKind, Rule
from inferencecache.resources.member_states import POOL
from inferencecache.resources.metadata import NAME_PATTERN
from inferencecache.resources.model import (
    LoadState,
    ObjectKey,
    ObjectState,
    ResourceObject,
)
from inferencecache.resources.models import Conditions, ObservedGeneration, ResourceModel
from inferencecache.resources.served_models import MODEL_CHARS_MAX, repeated
from inferencecache.resources.settle import SLICE_OBJECTS

_MATCHES_MAX: Final = 1_024
_TARGETS_MAX: Final = 64
_RULES_MAX: Final = 256

POOL_MISSING: Final = "PoolMissing"
"""State of a rewrite whose pool is not there."""


class PoolRefSpec(ResourceModel, frozen=True, kw_only=True):
    """Names a pool of the same namespace."""

    name: Annotated[
        str, Meta(min_length=1, max_length=253, pattern=NAME_PATTERN, description="Its name.")
    ]


class ModelMatchSpec(ResourceModel, frozen=True, kw_only=True):
    """A name that clients send."""

    type: (
        Annotated[
            Literal["Exact"],
            Meta(
                description="How names are compared; there is one way.",
                extra_json_schema={"default": "Exact"},
            ),
        ]
        | None
    ) = None
    value: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MODEL_CHARS_MAX,
            description="The name.",
            extra_json_schema={"example": "gpt-4o"},
        ),
    ]


class RewriteMatchSpec(ResourceModel, frozen=True, kw_only=True):
    """What a request must be for the rule to count."""

    model: ModelMatchSpec


class RewriteTargetSpec(ResourceModel, frozen=True, kw_only=True):
    """A model that may stand in."""

    model_rewrite: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MODEL_CHARS_MAX,
            description="Its name, as a client would ask for it.",
            extra_json_schema={"example": "llama-3.3-70b"},
        ),
    ]
    weight: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=1_000_000,
                description="How often it is drawn beside the others.",
                extra_json_schema={"default": 1},
            ),
        ]
        | None
    ) = None


class RewriteRuleSpec(ResourceModel, frozen=True, kw_only=True):
    """Rewrites the requests that it matches."""

    matches: (
        Annotated[
            list[RewriteMatchSpec],
            Meta(max_length=_MATCHES_MAX, description="One is enough; none matches all."),
        ]
        | None
    ) = None
    targets: Annotated[
        list[RewriteTargetSpec],
        Meta(min_length=1, max_length=_TARGETS_MAX, description="One is drawn by weight."),
    ]


class ModelRewriteSpec(ResourceModel, frozen=True, kw_only=True):
    """Rules in the order in which they are tried, those that name a model first."""

    pool_ref: PoolRefSpec | None = None
    rules: Annotated[
        list[RewriteRuleSpec],
        Meta(min_length=1, max_length=_RULES_MAX, description="The first that matches counts."),
    ]


class ModelRewriteStatus(ResourceModel, frozen=True, kw_only=True):
    """Written by nobody yet."""

    observed_generation: ObservedGeneration | None = None
    conditions: Conditions | None = None


def _check_targets(spec: ModelRewriteSpec) -> Flaw | None:
    for place, rule in enumerate(spec.rules):
        found = repeated(target.model_rewrite for target in rule.targets)
        if found is not None:
            return Flaw(
                field=f"spec.rules[{place}].targets[{found[0]}].modelRewrite",
                value=ascii(found[1]),
                allowed="each model once in a rule",
            )
    return None


def _assess(
    objects: Sequence[ResourceObject[ModelRewriteSpec]], load: LoadState
) -> Iterator[tuple[ObjectKey, ObjectState] | None]:
    """Name the rewrites of pools that are not there."""
    for count, found in enumerate(objects):
        if not count % SLICE_OBJECTS:
            yield None
        ref = found.spec.pool_ref
        if ref is not None and ObjectKey(POOL, found.key.namespace, ref.name) not in load.objects:
            yield (
                found.key,
                ObjectState(POOL_MISSING, "NotFound", f"there is no {POOL} {ref.name} here"),
            )


MODEL_REWRITE: Final = ResourceKind(
    kind="ModelRewrite",
    plural="modelrewrites",
    short_names=("mrw",),
    description="Which model stands in for the one that a client asks for.",
    spec=ModelRewriteSpec,
    status=ModelRewriteStatus,
    columns=(
        Column(
            name="Pool",
            type="string",
            path=".spec.poolRef.name",
            description="For whose requests it counts; all if empty.",
        ),
        AGE,
    ),
    rules=(Rule(path="spec.rules", cel="", message="", check=_check_targets),),
    assess=_assess,
)
