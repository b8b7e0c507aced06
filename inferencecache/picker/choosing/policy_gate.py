"""Ask the rules whether a tenant may have a model.

A request is asked about once per model that could serve it: a model that a tenant may not have
takes its own candidates away, and not those of another model that answers to the same name.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from inferencecache.picker.choice import Question
from inferencecache.picker.choosing.limits import LimitKey, Limits
from inferencecache.picker.fleet import (
    ObjectName,
    PickerPolicy,
    PolicyRule,
    RequestLimits,
    RuleAction,
)

_ALLOWED_IN_REASONS = str.maketrans(";=\n", "   ")


class Charge(NamedTuple):
    """A limit against which a request counts.

    Attributes:
        key: Where it is counted.
        number: The place of the rule in its policy, from 1.
        rule: Says how much is too much.
    """

    key: LimitKey
    number: int
    rule: PolicyRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the rules say about one model.

    Attributes:
        denial: Why not, as ``key=value`` pairs; empty if it is allowed.
        charged: The limits against which the request counts if it is served by this model.
    """

    denial: str = ""
    charged: tuple[Charge, ...] = ()


ALLOWED = Verdict()
"""No rule has anything to say."""


class PolicyGate:
    """Asks policies, and counts what their limits limit.

    Args:
        limits: Where it is counted.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def verdict(
        self,
        policies: Iterable[PickerPolicy],
        question: Question,
        models: frozenset[str],
        now_ns: int,
    ) -> Verdict:
        """Return what *policies* say to *question* if it is served by one of *models*.

        Args:
            policies: All that are in force; one that denies is enough.
            question: Who asks, and what for.
            models: The name the client used, and all those that it stands for.
            now_ns: Monotonic time.
        """
        charged: list[Charge] = []
        for policy in policies:
            number, rule = _deciding(policy, question, models)
            action = policy.default_action if rule is None else rule.action
            if action is RuleAction.DENY:
                return Verdict(denial=_where(policy.key, number) + _why(rule))
            if rule is not None and action is RuleAction.LIMIT:
                key = LimitKey(policy.key, rule.models, rule.qos_classes, question.tenant)
                charge = Charge(key, number, rule)
                denial = self._denial(charge, question, now_ns)
                if denial:
                    return Verdict(denial=denial)
                charged.append(charge)
        return Verdict(charged=tuple(charged)) if charged else ALLOWED

    def exceeded(self, verdict: Verdict, question: Question, now_ns: int) -> str:
        """Return which limit of *verdict* is used up by now, empty if there is room."""
        for charge in verdict.charged:
            denial = self._denial(charge, question, now_ns)
            if denial:
                return denial
        return ""

    def begin(self, verdict: Verdict, now_ns: int) -> tuple[LimitKey, ...]:
        """Count a request under its limits; return what :meth:`end` has to be told."""
        keys = tuple(charge.key for charge in verdict.charged)
        for key in keys:
            self._limits.begin(key, now_ns)
        return keys

    def end(self, keys: Iterable[LimitKey]) -> None:
        """Count a request no longer."""
        for key in keys:
            self._limits.end(key)

    def _denial(self, charge: Charge, question: Question, now_ns: int) -> str:
        """Return why one more request is too many, empty if it is not."""
        exceeded = self._exceeded(charge.key, charge.rule.limits, question, now_ns)
        if not exceeded:
            return ""
        where = _where(charge.key.policy, charge.number)
        return f"{where};limit={exceeded}{_why(charge.rule)}"

    def _exceeded(
        self, key: LimitKey, limits: RequestLimits, question: Question, now_ns: int
    ) -> str:
        """Return the name of the limit that one more request would break."""
        tokens_max, in_flight_max = limits.output_tokens_max, limits.in_flight_max
        if tokens_max is not None and (question.request.output_tokens_max or 0) > tokens_max:
            return "output_tokens"
        if in_flight_max is not None and self._limits.in_flight(key) >= in_flight_max:
            return "in_flight"
        rate_max = limits.requests_per_minute_max
        if rate_max is not None and self._limits.in_last_minute(key, now_ns) >= rate_max:
            return "requests_per_minute"
        return ""


def _deciding(
    policy: PickerPolicy, question: Question, models: frozenset[str]
) -> tuple[int, PolicyRule | None]:
    """Return the first rule of *policy* that matches, and its number from 1."""
    for number, rule in enumerate(policy.rules, start=1):
        if (
            (rule.tenants is None or question.tenant in rule.tenants)
            and (rule.models is None or not rule.models.isdisjoint(models))
            and (rule.qos_classes is None or question.qos in rule.qos_classes)
        ):
            return number, rule
    return 0, None


def _where(policy: ObjectName, number: int) -> str:
    return f"policy={policy};rule={number or 'default'}"


def _why(rule: PolicyRule | None) -> str:
    reason = "" if rule is None else rule.reason.translate(_ALLOWED_IN_REASONS).strip()
    return f";why={reason}" if reason else ""
