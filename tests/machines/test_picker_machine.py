"""Any interleaving of calls, resets, aborts, reloads and clock jumps, against plain records."""

from dataclasses import replace
from random import Random

from fleets import ChooserRig, fleet, name_of, provider, row, tier, worker_set
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)
from msgspec import structs
from plain_picker import PlainBody, PlainPicker
from reports import FINAL

from inferencecache.clock import ManualClock
from inferencecache.errors import InferenceCacheError
from inferencecache.picker.bodies import Body
from inferencecache.picker.choice import Choice, Outcome, QosClass, Question
from inferencecache.picker.decisions import (
    AbortReport,
    DecisionFollower,
    Ending,
    FinalTokenReport,
    FirstTokenReport,
)
from inferencecache.picker.faults import UnknownIdError, UsedBodyError
from inferencecache.picker.fleet import PickerPolicy, PolicyRule, RequestLimits, RuleAction
from inferencecache.picker.request import Api, InferenceRequest
from inferencecache.service.pick import PickParts, PickPlane
from inferencecache.settings.picker import PickerSettings

SETTINGS = PickerSettings(
    chunk_bytes_max=8,
    body_bytes_max=20,
    buffered_bytes_max=40,
    bodies_max=5,
    decisions_max=4,
    upload_idle_ns=5,
    body_ttl_ns=10,
    unpulled_ttl_ns=7,
    decision_ttl_ns=30,
    ended_ttl_ns=6,
)
STATUSES = st.sampled_from([0, 200, 401, 404, 429, 503])
ABORTS = st.sampled_from(["NOT_DISPATCHED", "BACKEND_UNAUTHORIZED", "PULL_FAILED"])
LOCAL = worker_set("local", row("m"), addresses=["a:1", "b:1"], concurrency=2)
VENDOR = provider("vendor", row("gpt", "m"))
LIMITED = PickerPolicy(
    key=name_of("limited"),
    rules=(
        PolicyRule(
            action=RuleAction.LIMIT,
            qos_classes=frozenset({QosClass.BATCH}),
            limits=RequestLimits(in_flight_max=2),
        ),
    ),
)
FLEETS = [
    fleet(tier("local", LOCAL), tier("vendor", VENDOR), policies=[LIMITED]),
    fleet(tier("local", replace(LOCAL, generation="2")), policies=[LIMITED]),
    fleet(tier("vendor", replace(VENDOR, generation="2"))),
    fleet(),
]
REQUEST = InferenceRequest(api=Api.UNKNOWN, model="m", model_names=("m",), model_spans=())


class OnlyOnce:
    """Checks that a decision begins and ends once, and that only a first token comes behind.

    Args:
        inner: Whoever really wants to know.
    """

    def __init__(self, inner: DecisionFollower) -> None:
        self._inner = inner
        self._has_started = False
        self.ending: Ending | None = None

    def first_token(self, report: FirstTokenReport) -> None:
        """Pass it on, before the end or behind a final report that has overtaken it."""
        assert self.ending in {None, Ending.FINISHED}
        assert not self._has_started
        self._has_started = True
        self._inner.first_token(report)

    def ended(self, ending: Ending, report: FinalTokenReport | AbortReport | None) -> None:
        """Pass the one ending on, with the report that belongs to it."""
        assert self.ending is None
        kinds = {Ending.FINISHED: FinalTokenReport, Ending.ABORTED: AbortReport}
        assert isinstance(report, kinds.get(ending, type(None)))
        self.ending = ending
        self._inner.ended(ending, report)


class PickerMachine(RuleBasedStateMachine):
    """Compares the picker's bodies and decisions with plain ones."""

    uploads = Bundle("uploads")
    streams = Bundle("streams")
    picked = Bundle("picked")
    responses = Bundle("responses")
    pulls = Bundle("pulls")

    @initialize(seed=st.integers(0, 1_000))
    def begin(self, seed: int) -> None:
        """Begin with nothing."""
        self.clock = ManualClock(1_000)
        draw = Random(seed)
        self.plane = PickPlane(
            PickParts(
                settings=SETTINGS,
                clock=self.clock,
                new_id=lambda: draw.getrandbits(64) if draw.random() < 0.8 else 0,
            )
        )
        self.model = PlainPicker(SETTINGS)
        self.rig = ChooserRig(FLEETS[0], clock=self.clock)
        self.followers: list[OnlyOnce] = []
        self.issued: set[int] = set()
        self.open_pulls: list[Body] = []

    @property
    def now(self) -> int:
        """The time."""
        return self.clock.monotonic_ns()

    def issue(self, number: int) -> None:
        """Check that an id is new and not 0."""
        assert number
        assert number not in self.issued
        self.issued.add(number)

    @rule(target=uploads, declared=st.none() | st.integers(0, 24))
    def open_upload(self, declared: int | None) -> object:
        """Begin an upload."""
        plain = self.model.open(declared, self.now)
        try:
            body = self.plane.open_upload(declared)
        except InferenceCacheError:
            assert plain is None
            return multiple()
        assert plain is not None
        return body, plain

    @rule(upload=uploads, size=st.integers(0, 10))
    def append(self, upload: tuple[Body, PlainBody], size: int) -> None:
        """Send a chunk."""
        expected = self.model.append(upload[1], size, self.now)
        try:
            self.plane.append(upload[0], bytes(size))
        except InferenceCacheError:
            assert not expected
        else:
            assert expected

    @rule(target=streams, upload=uploads)
    def complete(self, upload: tuple[Body, PlainBody]) -> object:
        """Close an upload."""
        body, plain = upload
        expected = self.model.complete(plain, self.now)
        try:
            plain.stream_id = self.plane.complete(body)
        except InferenceCacheError:
            assert not expected
            return multiple()
        assert expected
        self.issue(plain.stream_id)
        return upload

    @rule(upload=uploads)
    def reset(self, upload: tuple[Body, PlainBody]) -> None:
        """Reset an upload, even one that is closed already."""
        self.plane.tick()
        self.model.expire(self.now)
        self.model.retract(upload[1])
        self.plane.bodies.retract(upload[0])

    @rule(target=picked, stream=streams)
    def pick(self, stream: tuple[Body, PlainBody]) -> object:
        """Pick an id that was given out once."""
        expected = self.model.pick(stream[1].stream_id, self.now)
        try:
            body = self.plane.begin(stream[1].stream_id)
        except UsedBodyError:
            assert expected == "used"
            return multiple()
        except UnknownIdError:
            assert expected == "unknown"
            return multiple()
        assert expected == "picked"
        assert body is stream[0]
        assert body.content.length == stream[1].size
        return stream

    @rule(target=responses, stream=picked, qos=st.sampled_from(QosClass))
    def settle(self, stream: tuple[Body, PlainBody], qos: QosClass) -> object:
        """Decide, if nobody has decided and the body is still there."""
        body, plain = stream
        self.plane.tick()
        self.model.expire(self.now)
        is_decided = any(decision.body is plain for decision in self.model.decisions.values())
        if plain.state != "picked" or is_decided:
            return multiple()
        question = Question(request=REQUEST, content=body.content, qos=qos)
        choice = self.rig.choose(question)
        if not isinstance(choice, Choice):
            plain.state = "released"
            assert not self.plane.refuse(body, choice.outcome, choice.reason).response_id
            return multiple()
        assert choice.follower is not None
        self.followers.append(OnlyOnce(choice.follower))
        choice = structs.replace(choice, target_model="m", follower=self.followers[-1])
        answer = self.plane.settle(body, question, choice)
        assert answer.body_total_bytes == plain.size
        self.issue(answer.response_id)
        self.model.settle(plain, answer.response_id, choice.name, self.now)
        return answer.response_id

    @rule(target=responses, size=st.integers(0, 8), qos=st.sampled_from(QosClass))
    def decide_at_once(self, size: int, qos: QosClass) -> object:
        """Go all the way to a decision, which single steps seldom do."""
        upload = self.open_upload(None)
        if not isinstance(upload, tuple):
            return multiple()
        self.append(upload, size)
        stream = self.complete(upload)
        if not isinstance(stream, tuple):
            return multiple()
        return self.settle(self.pick(stream), qos)

    @rule(number=st.integers(0, len(FLEETS) - 1))
    def reload(self, number: int) -> None:
        """Put another fleet into force; what was decided stays as it is."""
        self.rig.install(FLEETS[number])

    @rule(stream=picked)
    def refuse(self, stream: tuple[Body, PlainBody]) -> None:
        """Answer a Pick without a destination, if nobody has decided."""
        body, plain = stream
        if any(decision.body is plain for decision in self.model.decisions.values()):
            return
        if plain.state == "picked":
            plain.state = "released"
            assert not self.plane.refuse(body, Outcome.NO_WORKERS, "").response_id

    @rule(target=pulls, response_id=responses)
    def pull(self, response_id: int) -> object:
        """Begin a PullBody."""
        expected = self.model.pull(response_id, self.now)
        try:
            body = self.plane.pull(response_id)
        except UnknownIdError:
            assert not expected
            return multiple()
        assert expected
        return body, self.model.decisions[response_id].body

    @rule(pull=pulls)
    def end_pull(self, pull: tuple[Body, PlainBody]) -> None:
        """End a PullBody, by its last byte or a reset."""
        assert self.plane.bodies.release(pull[0]) == (pull[1].state == "pulled")
        pull[1].state = "released"

    @rule(response_id=responses, status=STATUSES)
    def report_first(self, response_id: int, status: int) -> None:
        """Report a first token."""
        report = FirstTokenReport(observed_ttft_ms=1, upstream_status=status)
        expected = self.model.first(response_id, self.now)
        assert self.plane.first_token(response_id, report) == expected

    @rule(response_id=responses)
    def report_final(self, response_id: int) -> None:
        """Report a final token."""
        assert self.plane.final_token(response_id, FINAL) == self.model.final(response_id, self.now)

    @rule(response_id=responses, reason=ABORTS)
    def abort(self, response_id: int, reason: str) -> None:
        """Abort."""
        report = AbortReport(reason=reason, detail="")
        assert self.plane.abort(response_id, report) == self.model.abort(response_id, self.now)

    @rule(number=st.integers(0, 3))
    def use_unknown_ids(self, number: int) -> None:
        """Ids that nobody has been given change nothing."""
        assert not self.plane.abort(number, AbortReport(reason="PULL_FAILED", detail=""))
        report = FirstTokenReport(observed_ttft_ms=1, upstream_status=503)
        assert not self.plane.first_token(number, report)
        assert not self.plane.final_token(number, FINAL)

    @rule(delta=st.integers(1, 12))
    def wait(self, delta: int) -> None:
        """Let time pass without anybody looking."""
        self.clock.advance_ns(delta)

    @rule(delta=st.integers(1, 12))
    def go_back(self, delta: int) -> None:
        """Turn the clock back."""
        self.plane.tick()
        self.model.expire(self.now)
        self.clock.advance_ns(-delta)

    @rule()
    def tick(self) -> None:
        """Look for what is over; everything that is counted agrees then."""
        self.plane.tick()
        self.model.expire(self.now)
        assert len(self.plane.bodies) == len(self.model.live())
        assert self.plane.bodies.buffered_bytes == self.model.buffered()
        assert len(self.plane.decisions) == len(self.model.decisions)
        assert dict(self.plane.decisions.in_flight) == self.model.in_flight()

    @invariant()
    def limits_hold(self) -> None:
        """Nothing exceeds its cap, whatever happens."""
        if hasattr(self, "plane"):
            assert self.plane.bodies.buffered_bytes <= SETTINGS.buffered_bytes_max
            assert len(self.plane.bodies) <= SETTINGS.bodies_max
            assert len(self.plane.decisions) <= SETTINGS.decisions_max

    def teardown(self) -> None:
        """In the end, with every stream ended, nothing is left."""
        if not hasattr(self, "plane"):
            return
        for body in list(self.plane.bodies._bodies.values()):
            self.plane.bodies.release(body)
        for _ in range(3):
            self.clock.advance_ns(1_000)
            self.plane.tick()
        assert len(self.plane.bodies) == 0
        assert self.plane.bodies.buffered_bytes == 0
        assert len(self.plane.decisions) == 0
        assert self.plane.decisions.in_flight.total == 0
        assert len(self.rig.limits) == 0
        assert all(follower.ending is not None for follower in self.followers)
        assert not self.plane.decisions._followers
        assert not self.plane.bodies._used
        assert not self.plane.bodies._deadlines


TestPicker = PickerMachine.TestCase
TestPicker.settings = hypothesis_settings(max_examples=150, stateful_step_count=50, deadline=None)
