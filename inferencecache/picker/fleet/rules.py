"""Who may ask for what: the rules of PickerPolicy objects.

Rules of this file
    1. Every policy is asked about every request, whatever pool it names; one that denies is enough.
    2. In a policy the first rule that matches decides; where none does, the default action.
    3. Tenants are compared as they are: ``""`` is a tenant like any other, and no wildcard.
"""

from dataclasses import dataclass
from enum import StrEnum

from inferencecache.picker.fleet.member import ObjectName
from inferencecache.picker.qos import QosClass


class RuleAction(StrEnum):
    """What a rule does with the requests that it matches."""

    ALLOW = "Allow"
    DENY = "Deny"
    LIMIT = "Limit"
    """Allows what keeps the rule's limits, and denies the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """What one tenant may ask for under one rule; None is no limit.

    Attributes:
        in_flight_max: Most requests at once.
        requests_per_minute_max: Most requests in any minute.
        output_tokens_max: Most tokens of answer that a body may ask for; a body that says nothing
            asks for none.
    """

    in_flight_max: int | None = None
    requests_per_minute_max: int | None = None
    output_tokens_max: int | None = None


NO_LIMITS = RequestLimits()
"""Allows everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """One rule; it matches a request if each of its lists does, and None matches every request.

    Attributes:
        tenants: Matches the tenants in it and no other, so ``""`` only if it holds ``""``.
        models: Matches if it holds the model that the client asked for, or one that this stands
            for: a denied model is not to be had under another name.
        qos_classes: Matches the classes in it.
        action: What becomes of a request that matches.
        reason: A word or two for the caller; empty to say only which rule it was.
        limits: What RuleAction.LIMIT allows.
    """

    tenants: frozenset[str] | None = None
    models: frozenset[str] | None = None
    qos_classes: frozenset[QosClass] | None = None
    action: RuleAction
    reason: str = ""
    limits: RequestLimits = NO_LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerPolicy:
    """The rules of one object.

    Attributes:
        key: Its namespace and name.
        rules: In the order in which they are tried.
        default_action: ALLOW or DENY, for what no rule matches.
        generation: Changes when the object does.
    """

    key: ObjectName
    rules: tuple[PolicyRule, ...]
    default_action: RuleAction = RuleAction.ALLOW
    generation: str = ""
