"""Profiles: filters, weighted scores, pickers, and what happens when one of them fails."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pipeline_rig import (
    Making,
    Noted,
    Scoring,
    director,
    draws,
    key,
    pipeline,
    profile,
    question,
    raising,
    workers,
)

from inferencecache.picker.pipeline import (
    EndpointView,
    FailureKind,
    Hook,
    NoSignalError,
    PipelineRun,
    Ranking,
    Request,
    Scored,
)
from inferencecache.picker.pipeline.config import ProfileEntry


class Keeping:
    """Keeps the endpoints with these names."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def filter(
        self, _request: Request, endpoints: Sequence[EndpointView]
    ) -> Sequence[EndpointView]:
        """Keep them."""
        return [endpoint for endpoint in endpoints if endpoint.name in self.names]


def run_of(*profiles: ProfileEntry, noted: Noted | None = None, **plugins: object) -> PipelineRun:
    """Return a run through a pipeline of *plugins*."""
    return director(pipeline(profiles=profiles, **plugins), noted).open(question())


def names(ranking: Ranking) -> list[str]:
    """Return the endpoints of *ranking* in order."""
    return [scored.endpoint.name for scored in ranking.order]


def test_scores_are_clamped_weighted_and_summed() -> None:
    """2 x 1 (of 1.5) + 0.5 x 0.4 for a; 2 x 0.5 + 0.5 x 0 (of -3) for b."""
    run = run_of(
        profile("p", ("one", 2.0), ("two", 0.5)),
        one=Scoring(a=1.5, b=0.5),
        two=Scoring(a=0.4, b=-3.0),
    )
    ranking = run.rank(workers("b", "a"), "p")
    assert [(scored.endpoint.name, scored.score) for scored in ranking.order] == [
        ("a", pytest.approx(2.2)),
        ("b", pytest.approx(1.0)),
    ]
    assert [(part.scorer, part.weight, part.scores) for part in ranking.parts] == [
        ("one", 2.0, (0.5, 1.0)),
        ("two", 0.5, (0.0, 0.4)),
    ]
    assert ranking.profile == "p"
    assert [view.name for view in ranking.scored] == ["b", "a"]


def test_filters_come_in_order_and_before_scores() -> None:
    """Who was left out gets no points."""
    run = run_of(f=Keeping("a", "b"), g=Keeping("b", "c"), s=Scoring(a=1.0))
    assert names(run.rank(workers("a", "b", "c"))) == ["b"]


def test_filters_may_leave_nobody() -> None:
    """Then nobody is asked any more."""
    noted = Noted()
    run = run_of(f=Keeping(), s=raising("score"), noted=noted)
    assert run.rank(workers("a")).order == ()
    assert noted.failures == []


def test_a_failing_scorer_is_left_out_and_named() -> None:
    """The others decide."""
    noted = Noted()
    run = run_of(bad=raising("score"), good=Scoring(a=0.1, b=0.2), noted=noted)
    assert names(run.rank(workers("a", "b"))) == ["b", "a"]
    assert run.degraded == ["bad:raised"]
    assert noted.failures == [("bad", Hook.SCORE, FailureKind.RAISED)]


@pytest.mark.parametrize(
    "scores",
    [[1.0], [1.0, float("nan")], [1.0, "x"], None, [1.0] * 3, iter([1.0, 1.0]), [1.0, 10**400]],
)
def test_scores_that_are_none_are_a_failure(scores: object) -> None:
    """Too few, too many, or not numbers."""
    bad = Scoring()
    bad.score = lambda *_: scores
    run = run_of(bad=bad)
    assert len(run.rank(workers("a", "b")).order) == 2
    assert run.degraded == ["bad:invalid"]


def test_a_failure_in_every_tier_is_named_once() -> None:
    """The observer counts each of them."""
    noted = Noted()
    run = run_of(bad=raising("score"), noted=noted)
    for _ in range(3):
        run.rank(workers("a"))
    assert run.degraded == ["bad:raised"]
    assert len(noted.failures) == 3


def test_a_plugin_that_turns_its_arguments_around_harms_nobody() -> None:
    """Points stay with their endpoints; the caller's list is not even seen."""
    turning = Scoring(a=1.0)
    turning.score = lambda _, endpoints: endpoints.reverse()
    run = run_of(turning=turning, good=Scoring(a=0.5))
    views = workers("a", "b")
    assert names(run.rank(views)) == ["a", "b"]
    assert [view.name for view in views] == ["a", "b"]
    assert run.degraded == ["turning:raised"]


def test_no_signal_is_told_apart_from_a_fault() -> None:
    """An operator looks elsewhere for it."""
    run = run_of(blind=raising("score", NoSignalError("sight")))
    run.rank(workers("a"))
    assert run.degraded == ["blind:no_signal"]


def test_a_failing_filter_leaves_everybody_in() -> None:
    """As one that returns somebody it was not given."""
    stray = Keeping()
    stray.filter = lambda *_: workers("a")
    run = run_of(bad=raising("filter"), stray=stray)
    assert len(run.rank(workers("a", "b")).order) == 2
    assert run.degraded == ["bad:raised", "stray:invalid"]


@pytest.mark.parametrize("hook", ["filter", "pick"])
def test_endpoints_that_are_none_are_a_failure(hook: str) -> None:
    """Whatever was returned instead."""
    bad = type("Bad", (), {hook: lambda *_: 7})()
    run = run_of(bad=bad, good=Scoring(a=0.1, b=0.2))
    assert names(run.rank(workers("a", "b"))) == ["b", "a"]
    assert run.degraded == ["bad:invalid"]


def test_a_failing_picker_leaves_the_order_of_scores() -> None:
    """Equal scores then go by name, so that nothing depends on chance."""
    run = run_of(p=raising("pick"), s=Scoring(a=0.1, b=0.9, c=0.1))
    assert names(run.rank(workers("c", "b", "a"))) == ["b", "a", "c"]
    assert run.degraded == ["p:raised"]


def test_a_picker_may_name_some_and_the_rest_follows_by_score() -> None:
    """So that there is somebody to turn to."""
    picker = raising("pick")
    picker.pick = lambda _, scored: scored[:1]
    run = run_of(p=picker, s=Scoring(a=0.1, b=0.2, c=0.9))
    assert names(run.rank(workers("a", "b", "c"))) == ["a", "c", "b"]


@pytest.mark.parametrize("wrong", ["none", "twice", "strange"])
def test_a_picker_cannot_invent_endpoints(wrong: str) -> None:
    """Nor name one twice, nor none."""
    strange = Scored(workers("x")[0], 1.0)
    picker = raising("pick")
    picker.pick = lambda _, scored: {
        "none": [],
        "twice": [scored[0], scored[0]],
        "strange": [strange],
    }[wrong]
    run = run_of(p=picker)
    assert names(run.rank(workers("b", "a"))) == ["a", "b"]
    assert run.degraded == ["p:invalid"]


async def test_who_needs_a_key_that_failed_is_left_out() -> None:
    """Without another token: the producer's says it."""
    made = key("made")
    producer = Making(made)
    producer.produce = raising("produce").produce
    needy, free = Scoring(a=1.0), Scoring(b=0.1)
    needy.consumes = (made,)
    built = pipeline(maker=producer, needy=needy, free=free)
    run = director(built).open(question())
    views = workers("a", "b")
    await run.produce(views)
    assert names(run.rank(views)) == ["b", "a"]
    assert run.degraded == ["maker:raised"]


def test_the_handler_chooses_where_the_tier_names_nobody() -> None:
    """The product's own takes the first profile."""
    run = run_of(profile("x", "s"), profile("y"), s=Scoring(b=1.0))
    assert run.rank(workers("a", "b")).profile == "x"
    assert run.rank(workers("a", "b"), "y").profile == "y"


@pytest.mark.parametrize(("answer", "kind"), [("nobody", "invalid"), (None, "raised")])
def test_a_handler_that_is_wrong_gets_the_first_profile(answer: str | None, kind: str) -> None:
    """Named or raised."""
    handler = raising("profile")
    if answer:
        handler.profile = lambda *_: answer
    run = run_of(profile("x"), profile("y"), h=handler)
    assert run.rank(workers("a")).profile == "x"
    assert run.degraded == [f"h:{kind}"]


def test_without_a_handler_the_first_profile_is_taken() -> None:
    """As of a pipeline that nobody built from a configuration."""
    built = replace(pipeline(profiles=[profile("x"), profile("y")]), profile_handler=None)
    assert director(built).open(question()).rank(workers("a")).profile == "x"


async def test_a_filter_that_lacks_its_data_leaves_everybody_in() -> None:
    """Without another token."""
    made = key("made")
    producer, needy = Making(made), Keeping()
    producer.produce = raising("produce").produce
    needy.consumes = (made,)
    run = run_of(maker=producer, needy=needy)
    views = workers("a", "b")
    await run.produce(views)
    assert len(run.rank(views).order) == 2
    assert run.degraded == ["maker:raised"]


def test_an_unknown_profile_is_the_callers_mistake() -> None:
    """Whoever chooses looks at the names first."""
    with pytest.raises(KeyError):
        run_of(profile("p")).rank(workers("a"), "nobody")
    with pytest.raises(KeyError):
        run_of().rank(workers("a"))


def test_equal_scores_are_in_random_order() -> None:
    """By the numbers that are drawn."""
    built = pipeline(draw=draws(0.9, 0.1), profiles=[profile("p")])
    ranking = director(built).open(question()).rank(workers("a", "b"))
    assert names(ranking) == ["b", "a"]
