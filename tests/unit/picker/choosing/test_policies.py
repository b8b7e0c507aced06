"""Rules about tenants: equality and nothing else, limits, and what a caller is told."""

from dataclasses import replace

import pytest
from fleets import (
    ChooserRig,
    fleet,
    name_of,
    provider,
    question,
    row,
    tier,
    tokens_of,
    worker_set,
)

from inferencecache.clock import NS_PER_S
from inferencecache.picker.choice import Outcome, QosClass
from inferencecache.picker.decisions import Ending
from inferencecache.picker.fleet import (
    Fleet,
    PickerPolicy,
    PolicyRule,
    RequestLimits,
    RuleAction,
)
from inferencecache.settings.picker_choice import PickerChoiceSettings

ALLOW, DENY, LIMIT = RuleAction.ALLOW, RuleAction.DENY, RuleAction.LIMIT
MEMBERS = tier(
    "t",
    worker_set("local", row("org/llama", "chat")),
    provider("vendor", row("vendor/gpt", "chat")),
)


def rule(
    action: RuleAction,
    tenants: set[str] | None = None,
    models: set[str] | None = None,
    **fields: object,
) -> PolicyRule:
    """Return a rule."""
    return PolicyRule(
        action=action,
        tenants=None if tenants is None else frozenset(tenants),
        models=None if models is None else frozenset(models),
        **fields,
    )


def policy(*rules: PolicyRule, default: RuleAction = ALLOW, name: str = "p") -> PickerPolicy:
    """Return an object."""
    return PickerPolicy(key=name_of(name), rules=rules, default_action=default)


def under(*policies: PickerPolicy) -> Fleet:
    """Return a fleet with these rules."""
    return fleet(MEMBERS, policies=policies)


def is_allowed(in_force: Fleet, tenant: str) -> bool:
    """Return whether *tenant* gets an answer."""
    answer = ChooserRig(in_force).choose(question("chat", tenant=tenant))
    assert getattr(answer, "outcome", None) in {None, Outcome.POLICY_REJECTED}
    return not hasattr(answer, "outcome")


@pytest.mark.parametrize(
    ("rules", "default", "tenant", "expected"),
    [
        ([rule(DENY, {""})], ALLOW, "", False),
        ([rule(DENY, {""})], ALLOW, "acme", True),
        ([rule(DENY, {"acme"})], ALLOW, "", True),
        ([rule(ALLOW, {"acme"})], DENY, "", False),
        ([rule(ALLOW, {"acme"})], DENY, "acme", True),
        ([rule(ALLOW, {"acme"}), rule(ALLOW, {"b"})], DENY, "", False),
        ([rule(ALLOW, {"acme"}), rule(DENY, {"b"})], ALLOW, "", True),
        ([rule(ALLOW, {""})], DENY, "", True),
        ([rule(ALLOW, {""})], DENY, " ", False),
        ([rule(DENY, {"acme"})], ALLOW, "acme2", True),
        ([rule(DENY, {"acme"})], ALLOW, "Acme", True),
        ([rule(DENY)], ALLOW, "", False),
    ],
)
def test_tenants_are_compared_as_they_are(
    rules: list[PolicyRule], default: RuleAction, tenant: str, *, expected: bool
) -> None:
    """G85, G86: the empty one equals the empty one, and is no wildcard."""
    assert is_allowed(under(policy(*rules, default=default)), tenant) == expected


def test_the_first_rule_that_matches_decides() -> None:
    """And a second policy may still deny."""
    first = policy(rule(ALLOW, {"acme"}), rule(DENY), name="a")
    assert is_allowed(under(first), "acme")
    assert not is_allowed(under(first), "other")
    assert not is_allowed(under(first, policy(rule(DENY, {"acme"}), name="b")), "acme")


@pytest.mark.parametrize("qos", QosClass)
def test_a_class_can_be_denied(qos: QosClass) -> None:
    """The others are not."""
    rig = ChooserRig(under(policy(rule(DENY, qos_classes=frozenset({QosClass.BATCH})))))
    answer = rig.choose(question("chat", qos=qos))
    assert hasattr(answer, "outcome") == (qos is QosClass.BATCH)


def test_the_reason_names_rule_and_why() -> None:
    """In pairs that stay pairs, whatever somebody has written."""
    rig = ChooserRig(under(policy(rule(ALLOW, {"b"}), rule(DENY, {"acme"}, reason="not; now=x"))))
    refusal = rig.refused(question("chat", tenant="acme"))
    assert refusal.outcome is Outcome.POLICY_REJECTED
    assert refusal.reason == "policy=default/p;rule=2;why=not  now x"
    default = ChooserRig(under(policy(default=DENY))).refused(question("chat"))
    assert default.reason == "policy=default/p;rule=default"


def test_a_denied_model_is_not_to_be_had_under_another_name() -> None:
    """An alias leads to what is left; where nothing is left, the answer is no."""
    rig = ChooserRig(under(policy(rule(DENY, models={"org/llama"}))))
    assert {rig.chosen(question("chat")).target_model for _ in range(4)} == {"vendor/gpt"}
    assert rig.refused(question("org/llama")).outcome is Outcome.POLICY_REJECTED
    by_alias = ChooserRig(under(policy(rule(DENY, models={"chat"}))))
    for name in ("chat", "org/llama", "vendor/gpt"):
        assert by_alias.refused(question(name)).outcome is Outcome.POLICY_REJECTED


def limited(**limits: int) -> ChooserRig:
    """Return a chooser with one limit for everybody."""
    return ChooserRig(under(policy(rule(LIMIT, limits=RequestLimits(**limits)))))


def test_requests_in_flight_are_limited_by_tenant() -> None:
    """Each has its own; an end makes room."""
    rig = limited(in_flight_max=2)
    first = rig.chosen(question("chat", tenant="a"))
    rig.chosen(question("chat", tenant="a"))
    refusal = rig.refused(question("chat", tenant="a"))
    assert tokens_of(refusal.reason) == {
        "policy": "default/p",
        "rule": "1",
        "limit": "in_flight",
    }
    rig.chosen(question("chat", tenant="b"))
    assert first.follower is not None
    first.follower.ended(Ending.EXPIRED, None)
    rig.chosen(question("chat", tenant="a"))
    rig.refused(question("chat", tenant="a"))


def test_a_rate_holds_in_every_minute() -> None:
    """However requests fall into minutes, no sixty seconds have more."""
    rig = limited(requests_per_minute_max=3)
    asked = question("chat", tenant="a")
    times: list[int] = []
    for second in range(300):
        rig.clock.advance_ns(NS_PER_S)
        answers = [rig.choose(asked) for _ in range(2 if second % 7 == 0 else 0)]
        times += [second for answer in answers if not hasattr(answer, "outcome")]
    for start in range(240):
        assert sum(start <= second < start + 60 for second in times) <= 3
    assert len(times) >= 3 * 4
    rig.chosen(question("chat", tenant="b"))


def test_answers_can_be_limited() -> None:
    """A body that asks for too long an answer is refused; one that asks for none is not."""
    rig = limited(output_tokens_max=100)
    rig.chosen(question("chat", output_tokens=100))
    rig.chosen(question("chat"))
    refusal = rig.refused(question("chat", output_tokens=101))
    assert tokens_of(refusal.reason)["limit"] == "output_tokens"


def test_what_is_counted_is_given_back() -> None:
    """Refusals count nothing, endings give everything back."""
    rig = limited(in_flight_max=3)
    choices = [rig.chosen(question("chat", tenant=str(number))) for number in range(50)]
    rig.refused(question("other"))
    assert len(rig.limits) == 50
    for choice in choices:
        assert choice.follower is not None
        choice.follower.ended(Ending.ABORTED, None)
    assert len(rig.limits) == 0


@pytest.mark.parametrize("limits", [{"in_flight_max": 2}, {"requests_per_minute_max": 2}])
def test_a_limit_keeps_its_counts_while_its_policy_is_edited(limits: dict[str, int]) -> None:
    """A rule that comes before it, another tenant in it or another reason make no room."""
    limit = rule(LIMIT, tenants={"a"}, limits=RequestLimits(**limits))
    rig = ChooserRig(under(policy(limit)))
    for _ in range(2):
        rig.chosen(question("chat", tenant="a"))
    before = rule(LIMIT, models={"org/llama"}, limits=RequestLimits(**limits))
    edited = replace(limit, tenants=frozenset({"a", "b"}), reason="quota")
    rig.install(under(policy(rule(DENY, tenants={"x"}), edited, before)))
    refusal = rig.refused(question("chat", tenant="a"))
    assert tokens_of(refusal.reason)["rule"] == "2"
    assert tokens_of(refusal.reason)["why"] == "quota"
    rig.install(under(policy(before)))
    rig.chosen(question("chat", tenant="a"))
    higher = {name: number + 1 for name, number in limits.items()}
    rig.install(under(policy(replace(limit, limits=RequestLimits(**higher)))))
    rig.chosen(question("chat", tenant="a"))
    rig.refused(question("chat", tenant="a"))


def test_the_rates_of_the_idlest_tenants_are_forgotten() -> None:
    """The table does not grow with the names that callers invent."""
    limit = rule(LIMIT, limits=RequestLimits(requests_per_minute_max=1))
    rig = ChooserRig(under(policy(limit)), settings=PickerChoiceSettings(limited_tenants_max=20))
    for number in range(rig.settings.limited_tenants_max + 50):
        rig.chosen(question("chat", tenant=str(number)))
    assert rig.limits.rates_remembered == rig.settings.limited_tenants_max
    rig.refused(question("chat", tenant="69"))


def test_rates_are_forgotten_once_their_minute_is_over() -> None:
    """By whoever asks next, and by the clock alone: the names of idle tenants are not kept."""
    rig = limited(requests_per_minute_max=1)
    for number in range(50):
        rig.chosen(question("chat", tenant=str(number)))
    rig.clock.advance_ns(30 * NS_PER_S)
    rig.chosen(question("chat", tenant="later"))
    assert rig.limits.rates_remembered == 51
    rig.clock.advance_ns(31 * NS_PER_S)
    rig.refused(question("chat", tenant="later"))
    assert rig.limits.rates_remembered == 1
    rig.clock.advance_ns(29 * NS_PER_S)
    rig.limits.forget(rig.clock.monotonic_ns())
    assert rig.limits.rates_remembered == 1
    rig.clock.advance_ns(NS_PER_S)
    rig.limits.forget(rig.clock.monotonic_ns())
    assert rig.limits.rates_remembered == 0
    rig.chosen(question("chat", tenant="later"))


def test_an_allowed_alias_does_not_lead_to_another_model() -> None:
    """Where everything else is denied, only what the rule names by any name is left."""
    only = policy(rule(ALLOW, models={"org/llama"}), default=DENY)
    rig = ChooserRig(under(only))
    assert {rig.chosen(question("chat")).target_model for _ in range(4)} == {"org/llama"}
    assert rig.refused(question("vendor/gpt")).outcome is Outcome.POLICY_REJECTED
