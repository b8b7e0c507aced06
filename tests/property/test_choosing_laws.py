"""Laws of choosing, against rules that are spelt out from the fleet itself."""

from collections.abc import Mapping

from fleets import ChooserRig, fleet, name_of, provider, question, row, tier, worker_set
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_choosing import PlainCandidate, candidates_of, choosable, is_denied

from inferencecache.clock import NS_PER_S
from inferencecache.picker.choice import Choice, Outcome
from inferencecache.picker.choosing import FailureKind
from inferencecache.picker.fleet import (
    Candidate,
    ContextOverflow,
    EndpointRole,
    Fleet,
    Member,
    PickerPolicy,
    PolicyRule,
    RuleAction,
    Tier,
)

MODELS = ["m", "n", "o"]
ADDRESSES = ["a:1", "b:1", "c:1", "d:1"]
TENANTS = ["", "x"]

rows = st.lists(
    st.builds(
        lambda name, aliases, window, base: row(
            name, *(aliases - {name}), window=window, adapter_of=base if base != name else ""
        ),
        st.sampled_from(MODELS),
        st.sets(st.sampled_from(MODELS), max_size=2),
        st.sampled_from([None, 100, 1_000]),
        st.sampled_from(["", "m"]),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda found: found.name,
)
weights = st.dictionaries(st.sampled_from(ADDRESSES), st.sampled_from([0.5, 2.0]))
roles = st.dictionaries(st.sampled_from(ADDRESSES), st.sampled_from(list(EndpointRole)))
addresses = st.lists(st.sampled_from(ADDRESSES), min_size=1, unique=True)


@st.composite
def tiers(draw: st.DrawFn) -> tuple[Tier, ...]:
    """Draw tiers with members that have names of their own."""
    found: list[Tier] = []
    for number in range(draw(st.integers(1, 3))):
        members: list[Member] = []
        for place in range(draw(st.integers(1, 2))):
            name = f"{number}{place}"
            if draw(st.booleans()):
                members.append(provider(f"p{name}", *draw(rows)))
                continue
            members.append(
                worker_set(
                    f"w{name}",
                    *draw(rows),
                    addresses=draw(addresses),
                    concurrency=draw(st.sampled_from([1, 3])),
                    weights=draw(weights),
                    roles=draw(roles),
                )
            )
        found.append(tier(str(number), *members))
    return tuple(found)


policies = st.lists(
    st.builds(
        lambda tenants, models, action, default: PickerPolicy(
            key=name_of("p"),
            rules=(PolicyRule(tenants=tenants, models=models, action=action),),
            default_action=default,
        ),
        st.none() | st.frozensets(st.sampled_from(TENANTS), min_size=1),
        st.none() | st.frozensets(st.sampled_from(MODELS), min_size=1),
        st.sampled_from([RuleAction.ALLOW, RuleAction.DENY]),
        st.sampled_from([RuleAction.ALLOW, RuleAction.ALLOW, RuleAction.DENY]),
    ),
    max_size=2,
)
fleets = st.builds(
    lambda parts, rules, overflow: fleet(*parts, policies=rules, overflow=overflow),
    tiers(),
    policies,
    st.sampled_from(ContextOverflow),
)


@settings(max_examples=400, deadline=None)
@given(
    fleets,
    st.sampled_from(MODELS),
    st.sampled_from(TENANTS),
    st.sampled_from([0, 100, 500, 5_000]),
    st.dictionaries(st.sampled_from(ADDRESSES), st.integers(1, 4)),
    st.sets(st.integers(0, 11)),
)
def test_the_best_of_the_first_resort_is_chosen(  # noqa: PLR0917 - what a Pick depends on
    in_force: Fleet,
    model: str,
    tenant: str,
    need: int,
    loads: Mapping[str, int],
    failing: set[int],
) -> None:
    """The tier, the load and the resort are those of the plain rules; a refusal is, too."""
    rig = ChooserRig(in_force)
    for address, load in loads.items():
        rig.load(address, load)
    suppressed = suppress(rig, model, failing)
    answer = rig.choose(question(model, tenant=tenant, prompt_tokens=need))

    known = candidates_of(in_force.everything, model)
    allowed = [each for each in known if not is_denied(in_force.policies, tenant, model, each.row)]
    first = choosable(allowed, need, suppressed, in_force.everything.context_overflow)
    if not first:
        assert not isinstance(answer, Choice)
        denied = known and not allowed
        assert answer.outcome is (Outcome.POLICY_REJECTED if denied else Outcome.NO_WORKERS)
        return
    assert isinstance(answer, Choice)
    best = best_of(first, loads, need)
    assert answer.name in {each.name for each in best}
    assert answer.target_model in {each.row.name for each in best if each.name == answer.name}
    assert answer.is_degraded == (answer.name in suppressed)


def suppress(rig: ChooserRig, model: str, failing: set[int]) -> frozenset[str]:
    """Let some candidates of *model* fail until they are left alone; return their names."""
    found: list[Candidate] = [
        candidate
        for match in rig.chooser.in_force.index.everything.matches(model)
        for rows_of in match.rows
        for candidate in rows_of.candidates
    ]
    now_ns = rig.clock.monotonic_ns()
    names = set()
    for number in failing:
        if number < len(found):
            names.add(found[number].name)
            for _ in range(3):
                rig.suppression.failed(
                    found[number], FailureKind.FAILURE, now_ns - NS_PER_S, now_ns
                )
    return frozenset(names)


def best_of(
    candidates: list[PlainCandidate], loads: Mapping[str, int], need: int
) -> list[PlainCandidate]:
    """Return the fastest ones of the first tier that is not full, or of the first one.

    Workers before a provider that are full do not lead to it: it costs money.
    """
    by_tier: dict[int, list[PlainCandidate]] = {}
    is_after_full = False
    first_full: list[PlainCandidate] = []
    for each in candidates:
        by_tier.setdefault(each.tier, []).append(each)
    for _, found in sorted(by_tier.items()):
        local = [each for each in found if not each.is_provider]
        left = local if is_after_full else found
        if is_full(found, loads):
            is_after_full = True
            first_full = first_full or left
        elif left:
            return fastest(left, loads, need)
    return fastest(first_full, loads, need)


def fastest(
    candidates: list[PlainCandidate], loads: Mapping[str, int], need: int
) -> list[PlainCandidate]:
    """Return those with the lowest estimate."""
    times = [estimate_ms(each, loads, need) for each in candidates]
    return [each for each, ms in zip(candidates, times, strict=True) if ms == min(times)]


def estimate_ms(candidate: PlainCandidate, loads: Mapping[str, int], need: int) -> float:
    """Return 50 ms, an eighth per token, 1 ms per request and 20 ms per one that waits."""
    if candidate.is_provider:
        return 1_000.0
    requests = loads.get(candidate.name, 0)
    share = 1.0 / candidate.weight
    waiting = max(0, requests - candidate.room)
    return 50.0 + 1_000.0 * need / 8_000.0 + requests * share + waiting * share * 20.0


def is_full(candidates: list[PlainCandidate], loads: Mapping[str, int]) -> bool:
    """Return whether their workers have all they can do."""
    workers = [each for each in candidates if not each.is_provider]
    room = sum(each.room for each in workers)
    return bool(room) and sum(loads.get(each.name, 0) for each in workers) >= room
