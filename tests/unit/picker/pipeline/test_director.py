"""The director: who is asked in which order, and what a failure leads to."""

from asyncio import CancelledError
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest
from pipeline_rig import (
    Following,
    Making,
    Noted,
    Scoring,
    director,
    key,
    pipeline,
    question,
    raising,
    workers,
)

from inferencecache.picker.choice import Outcome, Refusal
from inferencecache.picker.decisions import Ending
from inferencecache.picker.pipeline import (
    DeniedError,
    Director,
    EndpointView,
    FailureKind,
    Hook,
    Placed,
    Produced,
    Request,
    TerminationCause,
)

A, B = key("a"), key("b")


class Everything(Following):
    """Has all hooks of requests, and keeps their order."""

    produces = (A,)

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def pre_admit(self, request: Request) -> None:
        """Change everything that may be changed."""
        self.calls.append("pre_admit")
        request.fairness_id = "team"
        request.headers = {**request.headers, "x-added": "1"}

    async def produce(self, request: Request, endpoints: Sequence[EndpointView]) -> Produced:
        """Say something."""
        self.calls.append(f"produce for {request.fairness_id} with {request.headers['x-added']}")
        produced = Produced()
        produced.put_for(endpoints[0], A, 7)
        return produced

    def admit(self, _request: Request, endpoints: Sequence[EndpointView]) -> None:
        """Look at what was said."""
        self.calls.append(f"admit with {endpoints[0].attributes.get(A)}")

    def score(self, _request: Request, endpoints: Sequence[EndpointView]) -> Sequence[float]:
        """Like it as much."""
        self.calls.append("score")
        return [float(endpoint.attributes.get(A) or 0) for endpoint in endpoints]

    def pre_request(self, request: Request, result: object) -> None:
        """Take note."""
        self.calls.append("pre_request")
        super().pre_request(request, result)


async def test_a_request_goes_through_all_steps_in_order() -> None:
    """What one step says the next one sees."""
    plugin = Everything()
    noted = Noted()
    run = director(pipeline(all=plugin), noted).open(question())
    views = workers("b", "a")
    assert run.pre_admit() is None
    await run.produce(views)
    assert run.admit(views) is None
    placed = run.pre_request(run.rank(views))
    assert isinstance(placed, Placed)
    assert placed.endpoint.name == "b"
    assert plugin.calls == [
        "pre_admit",
        "produce for team with 1",
        "admit with 7",
        "score",
        "pre_request",
    ]
    assert noted.failures == []
    assert run.degraded == []


def test_requests_have_keys_of_their_own() -> None:
    """Callers' names for them may be empty or the same."""
    opened = director(pipeline())
    runs = [opened.open(question(request_id="same")) for _ in range(3)]
    assert [run.request.key for run in runs] == [1, 2, 3]
    assert {run.request.request_id for run in runs} == {"same"}


def test_directors_that_follow_one_another_share_keys() -> None:
    """A plugin may remember beyond the configuration that it was made for."""
    keys = count(1)
    parts = director(pipeline())._parts
    first, second = (Director(replace(parts, keys=keys)) for _ in range(2))
    opened = [each.open(question()).request.key for each in (first, second, first)]
    assert opened == [1, 2, 3]


def test_the_first_pre_admitter_that_denies_stops_the_request() -> None:
    """With its reason; the others are not asked."""
    later = Everything()
    run = director(
        pipeline(door=raising("pre_admit", DeniedError("closed; a=1")), later=later)
    ).open(question())
    assert run.pre_admit() == Refusal(
        outcome=Outcome.POLICY_REJECTED, reason="denied_by=door;denial=closed, a:1"
    )
    assert later.calls == []


def test_a_denial_may_have_anything_for_a_reason() -> None:
    """What is no text becomes one."""
    run = director(pipeline(door=raising("pre_admit", DeniedError(429)))).open(question())
    refusal = run.pre_admit()
    assert refusal is not None
    assert refusal.reason == "denied_by=door;denial=429"


def test_a_pre_admitter_that_breaks_stops_it_as_well() -> None:
    """What it should have changed nobody knows; what it said stays inside."""
    noted = Noted()
    run = director(pipeline(door=raising("pre_admit", KeyError("secret"))), noted).open(question())
    refusal = run.pre_admit()
    assert refusal is not None
    assert (refusal.outcome, refusal.reason) == (
        Outcome.POLICY_REJECTED,
        "denied_by=door;denial=raised",
    )
    assert noted.failures == [("door", Hook.PRE_ADMIT, FailureKind.RAISED)]


@pytest.mark.parametrize("answer", [False, True, "no"])
def test_who_admits_says_nothing(answer: object) -> None:
    """Whoever returns something may mean a denial, which is no answer to be passed over."""
    odd = type("Odd", (), {"pre_admit": lambda *_: answer, "admit": lambda *_: answer})()
    noted = Noted()
    run = director(pipeline(odd=odd), noted).open(question())
    refusal = run.pre_admit()
    assert refusal is not None
    assert refusal.reason == "denied_by=odd;denial=invalid"
    assert run.admit(workers("a")) is None
    assert run.degraded == ["odd:invalid"]
    assert noted.failures == [
        ("odd", Hook.PRE_ADMIT, FailureKind.INVALID),
        ("odd", Hook.ADMIT, FailureKind.INVALID),
    ]


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), CancelledError()])
def test_no_hook_ends_the_program_or_the_task(error: BaseException) -> None:
    """What libraries call when they are used wrongly may be just that."""
    run = director(pipeline(odd=raising("pre_admit", error))).open(question())
    refusal = run.pre_admit()
    assert refusal is not None
    assert refusal.reason == "denied_by=odd;denial=raised"


def test_an_interrupt_is_not_a_plugins() -> None:
    """Somebody wants the program to end."""
    run = director(pipeline(odd=raising("pre_admit", KeyboardInterrupt()))).open(question())
    with pytest.raises(KeyboardInterrupt):
        run.pre_admit()


def test_all_admitters_must_say_yes() -> None:
    """The first no is the answer."""
    run = director(
        pipeline(
            yes=Everything(),
            no=raising("admit", DeniedError("full")),
            other=raising("admit", DeniedError("other")),
        )
    ).open(question())
    assert run.admit(workers("a")) == Refusal(
        outcome=Outcome.POLICY_REJECTED, reason="denied_by=no;denial=full"
    )


def test_an_admitter_that_breaks_has_no_say() -> None:
    """The answer says that it broke."""
    run = director(pipeline(broken=raising("admit"))).open(question())
    assert run.admit(workers("a")) is None
    assert run.degraded == ["broken:raised"]


async def test_an_admitter_that_lacks_its_data_is_not_asked() -> None:
    """Its producer's failure is in the answer."""
    producer = Making(A)
    producer.produce = raising("produce").produce
    door = raising("admit", DeniedError("no"))
    door.consumes = (A,)
    run = director(pipeline(maker=producer, door=door)).open(question())
    await run.produce(workers("a"))
    assert run.admit(workers("a")) is None
    assert run.degraded == ["maker:raised"]


async def test_who_is_left_out_of_a_request_hears_nothing_of_its_end() -> None:
    """There was no PreRequest for it to end."""
    producer, needy, other = Making(A), Following(), Following()
    producer.produce = raising("produce").produce
    needy.consumes = (A,)
    plugins = {"maker": producer, "needy": needy, "other": other, "s": Scoring()}
    run = director(pipeline(**plugins)).open(question())
    views = workers("a")
    await run.produce(views)
    placed = run.pre_request(run.rank(views))
    assert isinstance(placed, Placed)
    assert placed.follower is not None
    placed.follower.ended(Ending.EXPIRED, None)
    assert (needy.requests, needy.bodies) == ([], [])
    assert len(other.requests) == len(other.bodies) == 1


def test_all_pre_requests_run_and_a_failure_means_the_next_best() -> None:
    """Each attempt that ran has its end."""
    following = Following()
    picky = raising("pre_request")
    picky.pre_request = lambda _, result: 1 / (result.endpoint.name != "a")
    run = director(pipeline(picky=picky, follow=following, s=Scoring(a=1.0, b=0.5, c=0.1))).open(
        question()
    )
    placed = run.pre_request(run.rank(workers("a", "b", "c")))
    assert isinstance(placed, Placed)
    assert placed.endpoint.name == "b"
    assert [name for _, name in following.requests] == ["a", "b"]
    assert [(body.end_of_stream, body.termination) for body in following.bodies] == [
        (True, TerminationCause.WITHDRAWN)
    ]
    assert following.endpoints == ["a"]
    assert run.degraded == ["picky:raised"]


def test_two_failures_in_a_row_are_no_workers() -> None:
    """The third best is not tried; every attempt has its end."""
    following = Following()
    run = director(
        pipeline(
            one=raising("pre_request"),
            two=raising("pre_request"),
            follow=following,
            s=Scoring(a=1.0, b=0.5, c=0.1),
        )
    ).open(question())
    refusal = run.pre_request(run.rank(workers("a", "b", "c")))
    assert refusal == Refusal(outcome=Outcome.NO_WORKERS, reason="pre_request=one,two")
    assert following.endpoints == ["a", "b"]
    assert all(body.end_of_stream for body in following.bodies)


def test_nobody_to_try_is_no_workers() -> None:
    """As after filters that left nobody."""
    run = director(pipeline(s=Scoring())).open(question())
    refusal = run.pre_request(run.rank([]))
    assert run.degraded == []
    assert refusal == Refusal(outcome=Outcome.NO_WORKERS, reason="candidates=none")


def test_without_response_plugins_nobody_follows() -> None:
    """A decision then costs nothing more."""
    run = director(pipeline(s=Scoring())).open(question())
    placed = run.pre_request(run.rank(workers("a")))
    assert isinstance(placed, Placed)
    assert placed.follower is None


def test_profiles_are_known_by_name() -> None:
    """For whoever checks the tiers."""
    assert director(pipeline(s=Scoring())).profile_names == ("default",)
    assert director(pipeline()).profile_names == ()


def test_the_body_lives_no_longer_than_the_pick() -> None:
    """Whoever follows a decision for minutes must not hold 100 MiB; the rest of it stays."""
    following = Following()
    run = director(pipeline(s=Scoring(), follow=following)).open(question(content=b"x" * 400))
    assert run.request.content.length == 400
    run.pre_request(run.rank(workers("a")))
    assert run.request.content.length == 0
    assert run.request.prompt_tokens == 100


@pytest.mark.parametrize(
    ("product", "kind"),
    [
        ("undeclared", FailureKind.UNDECLARED),
        ("typed", FailureKind.INVALID),
        ("stranger", FailureKind.INVALID),
        ("nothing", FailureKind.INVALID),
        ("too_many", FailureKind.INVALID),
    ],
)
async def test_what_a_producer_may_not_say_is_dropped_and_a_failure(
    product: str, kind: FailureKind
) -> None:
    """All of it, or a dependant would work with a part."""
    views = workers("a")
    keys = [key(f"k{number}") for number in range(63)]
    maker = Making(A, *(keys if product == "too_many" else ()))

    async def produce(*_: object) -> object:
        produced = Produced()
        produced.put_for(views[0], A, 1)
        produced.put(A, 1)
        if product == "undeclared":
            produced.put(B, 1)
        elif product == "typed":
            produced.put(A, "1")
        elif product == "stranger":
            produced.put_for(workers("a")[0], A, 1)
        else:
            for each in keys:
                produced.put(each, 1)
        return None if product == "nothing" else produced

    maker.produce = produce
    noted = Noted()
    run = director(pipeline(maker=maker), noted).open(question())
    run.request.attributes.put(key("from a PreAdmitter"), 1)
    await run.produce(views)
    assert run.degraded == [f"maker:{kind}"]
    assert noted.failures == [("maker", Hook.PRODUCE, kind)]
    assert list(run.request.attributes) == ["from a PreAdmitter"]
    assert len(views[0].attributes) == 0


async def test_what_is_said_of_one_request_is_not_seen_by_another() -> None:
    """Though both know the same endpoints."""
    opened = director(pipeline(all=Everything()))
    first, second = opened.open(question()), opened.open(question())
    views, others = workers("a"), workers("a")
    first.pre_admit()
    await first.produce(views)
    assert views[0].attributes.get(A) == 7
    assert others[0].attributes.get(A) is None
    assert second.request.fairness_id == ""
