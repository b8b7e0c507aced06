"""The picker's use cases: take a body in, decide, hand it out, learn how it went.

A Pick has three steps, because reading the body and choosing may have to wait and this layer does
not: :meth:`PickPlane.begin` uses the stream_id up, then others read and choose, then
:meth:`PickPlane.settle`, :meth:`PickPlane.refuse` or, when it all came to nothing,
:meth:`PickPlane.drop` ends it. Every begin is followed by exactly one of them.
"""

from contextlib import suppress
from dataclasses import dataclass

import msgspec

from inferencecache.clock import Clock
from inferencecache.errors import InvalidRequestError
from inferencecache.picker.bodies import Body, BodyStore, Chunk, NewId
from inferencecache.picker.choice import (
    Choice,
    LocalDestination,
    Outcome,
    ProviderDestination,
    Question,
)
from inferencecache.picker.decisions import (
    AbortReport,
    DecisionFacts,
    DecisionTable,
    Ending,
    FinalTokenReport,
    FirstTokenReport,
)
from inferencecache.picker.faults import UnknownIdError, UsedBodyError
from inferencecache.picker.request import rewritten
from inferencecache.settings.picker import PickerSettings


class PickAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a Pick tells its caller.

    Attributes:
        outcome: What it found out.
        reason: ``key=value`` pairs separated by semicolons.
        requested_model: The model as the body names it; empty if it could not be read.
        destination: Where to send the request, if anywhere.
        response_id: Its name from now on; 0 without a destination.
        body_total_bytes: What PullBody will send; 0 without a destination.
        tier: Where in its pool the destination was found; empty without one.
    """

    outcome: Outcome
    reason: str
    requested_model: str = ""
    destination: LocalDestination | ProviderDestination | None = None
    response_id: int = 0
    body_total_bytes: int = 0
    tier: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PickParts:
    """What the picker's use cases are made of.

    Attributes:
        settings: Limits.
        clock: Monotonic time.
        new_id: Draws 64 random bits.
    """

    settings: PickerSettings
    clock: Clock
    new_id: NewId


class PickPlane:
    """All bodies and decisions of one server.

    Args:
        parts: Its collaborators.

    Attributes:
        bodies: What is uploaded and not yet handed out.
        decisions: What was decided and may still be reported about.
    """

    def __init__(self, parts: PickParts) -> None:
        self._clock = parts.clock
        self.bodies = BodyStore(parts.settings, parts.new_id)
        self.decisions = DecisionTable(parts.settings, self.bodies, parts.new_id)

    def open_upload(self, declared_bytes: int | None) -> Body:
        """Begin an upload; see :meth:`BodyStore.open`."""
        return self.bodies.open(declared_bytes, self._clock.monotonic_ns())

    def append(self, body: Body, chunk: Chunk) -> None:
        """Add to an upload; see :meth:`BodyStore.append`."""
        self.bodies.append(body, chunk, self._clock.monotonic_ns())

    def complete(self, body: Body) -> int:
        """Close an upload and return its stream_id; see :meth:`BodyStore.complete`."""
        return self.bodies.complete(body, self._clock.monotonic_ns())

    def begin(self, stream_id: int) -> Body:
        """Use *stream_id* up and return its body.

        Raises:
            InvalidRequestError: It is 0.
            UnknownIdError: Nobody has it.
            UsedBodyError: Another Pick has had it.
        """
        if stream_id == 0:
            raise InvalidRequestError(field="body_stream_id", value=0, allowed="any id but 0")
        return self.bodies.pick(stream_id, self._clock.monotonic_ns())

    def forfeit(self, stream_id: int) -> None:
        """Use *stream_id* up for a Pick that may not be made; its body, if any, goes.

        Whoever names it has uploaded it: nobody else knows it, and nobody can guess it.
        """
        with suppress(UnknownIdError, UsedBodyError):
            self.drop(self.bodies.pick(stream_id, self._clock.monotonic_ns()))

    def settle(self, body: Body, question: Question, choice: Choice) -> PickAnswer:
        """Write the chosen model into the body and remember the decision.

        Raises:
            UnknownIdError: Choosing took so long that the body is gone.
        """
        if body.is_released:
            if choice.follower is not None:
                choice.follower.ended(Ending.UNSETTLED, None)
            raise UnknownIdError("body_stream_id")
        now_ns = self._clock.monotonic_ns()
        body.content = rewritten(body.content, question.request, choice.target_model)
        facts = DecisionFacts(
            destination=choice.name,
            requested_model=question.request.model,
            target_model=choice.target_model,
            tenant=question.tenant,
            client_request_id=question.client_request_id,
            total_bytes=body.content.length,
            picked_ns=now_ns,
        )
        decision = self.decisions.add(facts, body, now_ns, choice.follower)
        return PickAnswer(
            outcome=Outcome.DEGRADED if choice.is_degraded else Outcome.OK,
            reason=choice.reason,
            requested_model=question.request.model,
            destination=choice.destination,
            response_id=decision.response_id,
            body_total_bytes=facts.total_bytes,
            tier=choice.tier,
        )

    def refuse(
        self, body: Body, outcome: Outcome, reason: str, requested_model: str = ""
    ) -> PickAnswer:
        """End a Pick without a destination; the body goes."""
        self.bodies.release(body)
        return PickAnswer(outcome=outcome, reason=reason, requested_model=requested_model)

    def drop(self, body: Body) -> None:
        """End a Pick that nobody waits for any more, or that failed; the body goes."""
        self.bodies.release(body)

    def pull(self, response_id: int) -> Body:
        """Return the body to hand out, once; whoever gets it releases it."""
        return self.decisions.pull(response_id, self._clock.monotonic_ns())

    def first_token(self, response_id: int, report: FirstTokenReport) -> bool:
        """Take a report; see :meth:`DecisionTable.first_token`."""
        return self.decisions.first_token(response_id, report, self._clock.monotonic_ns())

    def prompt_tokens_max(self, response_id: int) -> int | None:
        """Return what a report can say; see :meth:`DecisionTable.prompt_tokens_max`."""
        return self.decisions.prompt_tokens_max(response_id)

    def final_token(self, response_id: int, report: FinalTokenReport) -> bool:
        """Take a report; see :meth:`DecisionTable.final_token`."""
        return self.decisions.final_token(response_id, report, self._clock.monotonic_ns())

    def abort(self, response_id: int, report: AbortReport) -> bool:
        """Take a report; see :meth:`DecisionTable.abort`."""
        return self.decisions.abort(response_id, report, self._clock.monotonic_ns())

    def tick(self) -> None:
        """End everything whose time is over, without anybody having asked for it."""
        now_ns = self._clock.monotonic_ns()
        self.bodies.expire(now_ns)
        self.decisions.expire(now_ns)

    def stop(self) -> None:
        """End every decision, for a server that ends."""
        self.decisions.stop()

    def drain(self) -> None:
        """Take no new bodies; those that are there may still be picked and pulled."""
        self.bodies.is_draining = True
