"""Ask the rules whether a tenant may have a model.

A request is asked about once per model that could serve it: a model that a tenant may not have
takes its own candidates away, and not those of another model that answers to the same name.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from inferencecache.picker.choice import Question
from inferencecache.picker.choosing.limits import LimitKey, Limits
from inferencecache.picker.fleet import PickerPolicy, PolicyRule, RequestLimits, RuleAction

_ALLOWED_IN_REASONS = str.maketrans(";=\n", "   ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the rules say about one model.

    Attributes:
        denial: Why not, as ``key=value`` pairs; empty if it is allowed.
        charged: The limits against which the request counts if it is served by this model.
    """

    denial: str = ""
    charged: tuple[tuple[LimitKey, RequestLimits], ...] = ()


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
        charged: list[tuple[LimitKey, RequestLimits]] = []
        for policy in policies:
            number, rule = _deciding(policy, question, models)
            action = policy.default_action if rule is None else rule.action
            where = f"policy={policy.key};rule={number or 'default'}"
            if action is RuleAction.DENY:
                return Verdict(denial=where + _why(rule))
            if rule is not None and action is RuleAction.LIMIT:
                key = LimitKey(policy.key, number, question.tenant)
                exceeded = self._exceeded(key, rule.limits, question, now_ns)
                if exceeded:
                    return Verdict(denial=f"{where};limit={exceeded}{_why(rule)}")
                charged.append((key, rule.limits))
        return Verdict(charged=tuple(charged)) if charged else ALLOWED

    def exceeded(self, verdict: Verdict, question: Question, now_ns: int) -> str:
        """Return which limit of *verdict* is used up by now, empty if there is room."""
        for key, limits in verdict.charged:
            exceeded = self._exceeded(key, limits, question, now_ns)
            if exceeded:
                return f"policy={key.policy};rule={key.rule};limit={exceeded}"
        return ""

    def begin(self, verdict: Verdict, now_ns: int) -> tuple[LimitKey, ...]:
        """Count a request under its limits; return what :meth:`end` has to be told."""
        keys = tuple(key for key, _ in verdict.charged)
        for key in keys:
            self._limits.begin(key, now_ns)
        return keys

    def end(self, keys: Iterable[LimitKey]) -> None:
        """Count a request no longer."""
        for key in keys:
            self._limits.end(key)

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


def _why(rule: PolicyRule | None) -> str:
    reason = "" if rule is None else rule.reason.translate(_ALLOWED_IN_REASONS).strip()
    return f";why={reason}" if reason else ""
