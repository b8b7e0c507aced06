"""Every PreRequest has one end, whatever callers do and however time passes."""

from collections import Counter
from random import Random

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from pipeline_rig import Scoring, director, parsed, pipeline, workers
from reports import ABORT, FINAL, FIRST

from inferencecache.clock import ManualClock
from inferencecache.picker.bodies import Body
from inferencecache.picker.choice import Choice, Question, Refusal
from inferencecache.picker.decisions import (
    Ending,
)
from inferencecache.picker.faults import UnknownIdError
from inferencecache.picker.pipeline import (
    EndpointView,
    Request,
    Response,
    SchedulingResult,
    TerminationCause,
)
from inferencecache.service.pick import PickParts, PickPlane
from inferencecache.settings.picker import PickerSettings

SETTINGS = PickerSettings(
    decisions_max=4,
    bodies_max=50,
    body_ttl_ns=30,
    unpulled_ttl_ns=5,
    decision_ttl_ns=10,
    ended_ttl_ns=4,
)

Attempt = tuple[int, str]


class Witness:
    """Has the hooks, and keeps for each attempt what it was told."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.told: dict[Attempt, list[str]] = {}
        self.causes: Counter[TerminationCause] = Counter()
        self.refuses: set[str] = set()

    def pre_request(self, request: Request, result: SchedulingResult) -> None:
        """Take note; refuse some endpoints."""
        attempt = (request.key, result.endpoint.name)
        self.attempts.append(attempt)
        self.told[attempt] = []
        if result.endpoint.name in self.refuses:
            raise RuntimeError("told to")

    def response_header(
        self, request: Request, _response: Response, endpoint: EndpointView
    ) -> None:
        """Take note."""
        self.told[request.key, endpoint.name].append("header")

    def response_body(self, request: Request, response: Response, endpoint: EndpointView) -> None:
        """Take note; a plugin that breaks is told of the rest all the same."""
        told = self.told[request.key, endpoint.name]
        told.append("start" if response.start_of_stream else "")
        if response.end_of_stream:
            told[-1] += "end"
            assert response.termination is not None
            self.causes[response.termination] += 1
        raise RuntimeError("told to")


LIVES = {
    (): False,
    ("header", "start"): False,
    ("end",): True,
    ("startend",): True,
    ("header", "start", "end"): True,
}
"""What an attempt may be told, and whether it is over then."""


class ResponseMachine(RuleBasedStateMachine):
    """Picks, reports, aborts, waits, and bodies that are gone too early."""

    responses = Bundle("responses")

    @initialize(seed=st.integers(0, 1_000))
    def begin(self, seed: int) -> None:
        """Begin with nothing."""
        self.witness = Witness()
        self.clock = ManualClock(1_000)
        self.director = director(pipeline(scores=Scoring(a=1.0, b=0.5), witness=self.witness))
        new_id = Random(seed).getrandbits
        self.plane = PickPlane(
            PickParts(settings=SETTINGS, clock=self.clock, new_id=lambda: new_id(64))
        )

    def body(self) -> Body:
        """Return a body that was picked."""
        body = self.plane.open_upload(None)
        self.plane.append(body, b'{"model": "m"}')
        return self.plane.begin(self.plane.complete(body))

    @rule(
        target=responses,
        refused=st.frozensets(st.sampled_from("ab")),
        is_gone=st.booleans(),
    )
    def pick(self, refused: frozenset[str], is_gone: bool) -> object:  # noqa: FBT001 - drawn
        """Choose, and settle on a body that may be gone."""
        self.witness.refuses = set(refused)
        body = self.body()
        question = Question(request=parsed(), content=body.content)
        run = self.director.open(question)
        placed = run.pre_request(run.rank(workers("a", "b")))
        if isinstance(placed, Refusal):
            assert refused == {"a", "b"}
            self.plane.refuse(body, placed.outcome, placed.reason)
            return multiple()
        if is_gone:
            self.plane.bodies.release(body)
        choice = Choice(
            destination=placed.endpoint.candidate.destination,
            target_model="m",
            follower=placed.follower,
        )
        try:
            return self.plane.settle(body, question, choice).response_id
        except UnknownIdError:
            assert is_gone
            return multiple()

    @rule(response_id=responses)
    def pull(self, response_id: int) -> None:
        """Pull to the end, if there is anything to pull."""
        try:
            body = self.plane.pull(response_id)
        except UnknownIdError:
            return
        self.plane.bodies.release(body)

    @rule(response_id=responses)
    def first(self, response_id: int) -> None:
        """Report a first token, early, late or again."""
        self.plane.first_token(response_id, FIRST)

    @rule(response_id=responses)
    def final(self, response_id: int) -> None:
        """Report a final token, or do it again."""
        self.plane.final_token(response_id, FINAL)

    @rule(response_id=responses)
    def abort(self, response_id: int) -> None:
        """Abort, even what is over."""
        self.plane.abort(response_id, ABORT)

    @rule(delta=st.integers(-3, 12))
    def wait(self, delta: int) -> None:
        """Let time pass, or go back."""
        self.clock.advance_ns(delta)
        self.plane.tick()

    @invariant()
    def lives_are_whole(self) -> None:
        """Nobody is told anything out of order, twice, or behind the end."""
        if hasattr(self, "witness"):
            assert all(tuple(told) in LIVES for told in self.witness.told.values())
            assert len(self.witness.attempts) == len(self.witness.told)

    @invariant()
    def what_is_not_over_is_a_decision(self) -> None:
        """Nothing is followed that nobody knows any more, or of which nothing more can come."""
        if hasattr(self, "witness"):
            alive = [told for told in self.witness.told.values() if not LIVES[tuple(told)]]
            assert len(alive) == self.plane.decisions.in_flight.total
            decisions = self.plane.decisions
            overtaken = [
                response_id
                for response_id, decision in decisions._decisions.items()
                if decision.ending is Ending.FINISHED and not decision.has_first_token
            ]
            assert len(decisions._followers) == len(alive) + len(overtaken)
            assert decisions._followers.keys() >= set(overtaken)

    def teardown(self) -> None:
        """When the server ends, everything has ended, each once."""
        if not hasattr(self, "witness"):
            return
        self.plane.stop()
        assert all(LIVES[tuple(told)] for told in self.witness.told.values())
        assert self.witness.causes.total() == len(self.witness.attempts)
        assert not self.plane.decisions._followers
        assert self.plane.decisions.in_flight.total == 0


TestResponses = ResponseMachine.TestCase
TestResponses.settings = hypothesis_settings(
    max_examples=150, stateful_step_count=40, deadline=None
)
