"""PickerPolicy: which tenants may ask for which models, and how much."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from inferencecache.resources.flaw import Flaw, shown
from inferencecache.resources.kind import AGE, Column, ResourceKind, Rule
from inferencecache.resources.models import Conditions, ObservedGeneration, ResourceModel
from inferencecache.types import INT32_MAX

_NAMES_MAX: Final = 4_096
_RULES_MAX: Final = 1_024

Limit = Annotated[int, Meta(ge=0, le=INT32_MAX, extra_json_schema={"format": "int32"})]


class RuleLimitsSpec(ResourceModel, frozen=True, kw_only=True):
    """What one tenant may ask for under a rule; a limit that is left out does not exist."""

    max_requests_in_flight: (
        Annotated[Limit, Meta(description="Most requests of one tenant at once.")] | None
    ) = None
    max_requests_per_minute: (
        Annotated[Limit, Meta(description="Most requests of one tenant in any minute.")] | None
    ) = None
    max_output_tokens: (
        Annotated[Limit, Meta(description="Most tokens of answer that a body may ask for.")] | None
    ) = None


class PolicyRuleSpec(ResourceModel, frozen=True, kw_only=True):
    """Matches a request that each of its lists matches; a list that is left out matches all."""

    tenants: (
        Annotated[
            list[Annotated[str, Meta(max_length=1_024)]],
            Meta(
                min_length=1,
                max_length=_NAMES_MAX,
                description='Tenants, as they are; "" is a request whose tenant nobody knows, '
                "and nothing else.",
            ),
        ]
        | None
    ) = None
    models: (
        Annotated[
            list[Annotated[str, Meta(min_length=1, max_length=1_024)]],
            Meta(
                min_length=1,
                max_length=_NAMES_MAX,
                description="Models, by a name that clients use or by the name that is served.",
            ),
        ]
        | None
    ) = None
    qos_classes: (
        Annotated[
            list[Literal["INTERACTIVE", "BATCH", "DEFERRABLE"]],
            Meta(min_length=1, max_length=3, description="Classes of service."),
        ]
        | None
    ) = None
    action: Annotated[
        Literal["Allow", "Deny", "Limit"],
        Meta(description="What becomes of a request that matches."),
    ]
    reason: (
        Annotated[
            str,
            Meta(
                max_length=64,
                pattern=r"^[A-Za-z0-9_.:/-]+\Z",
                description="What the caller is told when it is denied.",
                extra_json_schema={"example": "quota"},
            ),
        ]
        | None
    ) = None
    limits: RuleLimitsSpec | None = None


class PickerPolicySpec(ResourceModel, frozen=True, kw_only=True):
    """Rules in the order in which they are tried."""

    rules: (
        Annotated[
            list[PolicyRuleSpec],
            Meta(max_length=_RULES_MAX, description="The first that matches decides."),
        ]
        | None
    ) = None
    default_action: (
        Annotated[
            Literal["Allow", "Deny"],
            Meta(
                description="What becomes of a request that no rule matches.",
                extra_json_schema={"default": "Allow"},
            ),
        ]
        | None
    ) = None


class PickerPolicyStatus(ResourceModel, frozen=True, kw_only=True):
    """Written by nobody yet."""

    observed_generation: ObservedGeneration | None = None
    conditions: Conditions | None = None


def _check_rules(spec: PickerPolicySpec) -> Flaw | None:
    for place, rule in enumerate(spec.rules or ()):
        if (rule.action == "Limit") != (rule.limits is not None):
            return Flaw(
                field=f"spec.rules[{place}].limits",
                value="nothing" if rule.limits is None else shown({}),
                allowed="limits exactly where action is Limit",
            )
    return None


PICKER_POLICY: Final = ResourceKind(
    kind="PickerPolicy",
    plural="pickerpolicies",
    short_names=("ppol",),
    description="Which requests are picked for. Every policy is asked about every request, and "
    "one that denies is enough.",
    spec=PickerPolicySpec,
    status=PickerPolicyStatus,
    columns=(
        Column(
            name="Default",
            type="string",
            path=".spec.defaultAction",
            description="What becomes of a request that no rule matches.",
        ),
        AGE,
    ),
    rules=(
        Rule(
            path="spec.rules",
            cel="self.all(rule, (rule.action == 'Limit') == has(rule.limits))",
            message="limits belong to action Limit",
            check=_check_rules,
        ),
    ),
)
