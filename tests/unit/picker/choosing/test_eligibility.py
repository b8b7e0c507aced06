"""Who may take a request: windows, APIs, tiers, and the order among those who may."""

import pytest
from fleets import (
    ChooserRig,
    fleet,
    provider,
    question,
    row,
    tier,
    tokens_of,
    worker_set,
)

from inferencecache.picker.choice import Outcome
from inferencecache.picker.choosing import FailureKind
from inferencecache.picker.decisions import Ending
from inferencecache.picker.fleet import ContextOverflow
from inferencecache.picker.request import Api

SMALL = worker_set("small", row("m", window=1_000))
LARGE = provider("large", row("big", "m", window=10_000))


def by_window(overflow: ContextOverflow = ContextOverflow.LARGEST) -> ChooserRig:
    """Return a chooser with a small window before a large one."""
    return ChooserRig(fleet(tier("local", SMALL), tier("vendor", LARGE), overflow=overflow))


@pytest.mark.parametrize(
    ("tokens", "output", "expected"),
    [
        (1_000, None, "small:1"),
        (1_001, None, "provider:default/large"),
        (900, 100, "small:1"),
        (900, 101, "provider:default/large"),
        (9_000, 1_000, "provider:default/large"),
    ],
)
def test_a_counted_prompt_goes_where_it_fits(
    tokens: int, output: int | None, expected: str
) -> None:
    """To the token, prompt and answer together."""
    choice = by_window().chosen(question(prompt_tokens=tokens, output_tokens=output))
    assert choice.name == expected
    assert "context" not in tokens_of(choice.reason)


@pytest.mark.parametrize(
    ("size", "output", "expected"),
    [
        (5_000, None, "small:1"),
        (5_010, None, "provider:default/large"),
        (4_000, 200, "small:1"),
        (4_000, 201, "provider:default/large"),
        (None, None, "small:1"),
    ],
)
def test_an_estimate_keeps_away_only_by_far(
    size: int | None, output: int | None, expected: str
) -> None:
    """Four bytes a token, of which eight tenths must exceed the window."""
    assert by_window().chosen(question(prompt_bytes=size, output_tokens=output)).name == expected


def test_what_fits_nowhere_goes_to_the_largest_window() -> None:
    """The engine there refuses it in words that clients know; the outcome is OK."""
    choice = by_window().chosen(question(prompt_tokens=10_001))
    assert choice.name == "provider:default/large"
    assert tokens_of(choice.reason)["context"] == "exceeds"
    assert not choice.is_degraded


def test_a_pool_may_refuse_what_fits_nowhere() -> None:
    """And nothing that fits."""
    rig = by_window(ContextOverflow.REJECT)
    refusal = rig.refused(question(prompt_tokens=10_001))
    assert (refusal.outcome, refusal.reason) == (Outcome.NO_WORKERS, "context=exceeds")
    assert rig.chosen(question(prompt_tokens=10_000)).name == "provider:default/large"


def test_nobody_waits_for_a_window_that_is_too_small() -> None:
    """A request is told to come back only where somebody it fits into is left alone."""
    rig = by_window(ContextOverflow.REJECT)
    large = rig.chosen(question(prompt_tokens=5_000)).candidate
    assert large is not None
    now_ns = rig.clock.monotonic_ns()
    for _ in range(3):
        rig.suppression.failed(large, FailureKind.FAILURE, now_ns, now_ns)
    reasons = [rig.refused(question(prompt_tokens=tokens)).reason for tokens in (10_000, 10_001)]
    assert reasons == ["candidates=suppressed", "context=exceeds"]


def test_a_window_that_nobody_declares_is_large_enough() -> None:
    """Who says nothing is not left out."""
    rig = ChooserRig(fleet(tier("t", worker_set("s", row("m")))))
    assert rig.chosen(question(prompt_tokens=10**9)).name == "s:1"


def test_a_provider_that_speaks_another_api_is_left_out() -> None:
    """Anthropic messages are not for those that speak OpenAI; workers serve both."""
    rig = by_window()
    asked = question(api=Api.ANTHROPIC_MESSAGES, prompt_tokens=5_000)
    choice = rig.chosen(asked)
    assert choice.name == "small:1"
    assert tokens_of(choice.reason)["context"] == "exceeds"
    alone = ChooserRig(fleet(tier("vendor", LARGE)))
    refusal = alone.refused(question(api=Api.ANTHROPIC_MESSAGES))
    assert (refusal.outcome, refusal.reason) == (Outcome.NO_WORKERS, "api=unsupported")


def test_a_body_of_no_known_shape_is_degraded() -> None:
    """Routed by its model, and said so."""
    choice = by_window().chosen(question(api=Api.UNKNOWN))
    assert choice.is_degraded
    assert tokens_of(choice.reason)["degraded"] == "shape"


def test_load_counts_by_weight() -> None:
    """A worker of weight 3 gets three times as many."""
    members = worker_set("s", row("m"), addresses=["a:1", "b:1"], weights={"a:1": 3.0, "b:1": 1.0})
    rig = ChooserRig(fleet(tier("t", members)))
    names = [rig.chosen().name for _ in range(40)]
    assert names.count("a:1") == 30
    assert names.count("b:1") == 10


def test_of_equals_the_one_that_waited_longest() -> None:
    """Also when every request ends before the next one begins."""
    members = worker_set("s", row("m"), addresses=["a:1", "b:1", "c:1"])
    rig = ChooserRig(fleet(tier("t", members)))
    assert [rig.passed().name for _ in range(6)] == ["a:1", "b:1", "c:1"] * 2


def test_a_full_tier_is_passed_over() -> None:
    """Until something in it ends; when all are full the first takes what comes, and says so."""
    first = worker_set("first", row("m"), concurrency=2)
    second = worker_set("second", row("m"), concurrency=1)
    rig = ChooserRig(fleet(tier("one", first), tier("two", second)))
    choices = [rig.chosen() for _ in range(5)]
    assert [choice.tier for choice in choices] == ["one", "one", "two", "one", "one"]
    full = [tokens_of(choice.reason).get("saturated", "") for choice in choices]
    assert full == ["", "", "", "1", "1"]
    for choice in (choices[0], choices[1], choices[3]):
        assert choice.follower is not None
        choice.follower.ended(Ending.FINISHED, None)
    assert rig.chosen().tier == "one"


def test_a_tier_is_full_where_its_pool_says() -> None:
    """At half of what its workers can do; providers are never full."""
    half = worker_set("half", row("m"), concurrency=4)
    vendor = provider("vendor", row("m"))
    tiers = (tier("one", half, saturation=0.5), tier("two", vendor))
    rig = ChooserRig(fleet(*tiers, spills=True))
    assert [rig.chosen().tier for _ in range(5)] == ["one", "one", "two", "two", "two"]


def test_an_empty_tier_is_passed_over() -> None:
    """One whose members do not serve the model is as good as none."""
    other = worker_set("other", row("another"))
    rig = ChooserRig(fleet(tier("one", other), tier("two", SMALL)))
    assert rig.chosen().tier == "two"


def test_a_profile_that_nobody_has_is_no_reason_to_refuse() -> None:
    """The tier is ranked as others are, and the answer says that something was missing."""
    rig = ChooserRig(fleet(tier("one", SMALL, profile="missing")))
    choice = rig.chosen()
    assert choice.is_degraded
    assert tokens_of(choice.reason)["degraded"] == "profile_missing"


def test_a_choice_can_be_explained() -> None:
    """Who was ranked, who was kept away, and by what; the chosen one comes first."""
    busy = worker_set("busy", row("m"), addresses=["a:1", "b:1"])
    rig = ChooserRig(fleet(tier("one", SMALL, busy), tier("two", LARGE)))
    rig.load("a:1", prefill_tokens=800)
    explanation = rig.chosen(question(prompt_tokens=2_000)).explanation
    assert explanation is not None
    shown = {
        found.name: (found.tier, found.barrier, found.in_flight, found.rank, found.estimated_ms)
        for found in explanation.candidates
    }
    assert shown == {
        "b:1": ("one", "none", 0, 1, 50.0 + 2_000 / 8),
        "a:1": ("one", "none", 1, 2, 50.0 + 2_800 / 8 + 1.0),
        "provider:default/large": ("two", "none", 0, 0, 1_000.0),
        "small:1": ("", "context", 0, 0, 50.0 + 2_000 / 8),
    }
    assert explanation.candidates[0].name == "b:1"
    assert explanation.candidates_total == 4
    assert (explanation.need_tokens, explanation.is_counted) == (2_000, True)
    refusal = rig.refused(question(api=Api.ANTHROPIC_MESSAGES, model="big"))
    assert refusal.explanation is not None
    assert [found.barrier for found in refusal.explanation.candidates] == ["api"]
