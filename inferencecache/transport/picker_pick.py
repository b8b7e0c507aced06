"""One Pick: use the id up, read the body, choose, answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.bodies import Body
from inferencecache.picker.choice import (
    Choice,
    Chooser,
    Outcome,
    PoolName,
    QosClass,
    Question,
    Refusal,
)
from inferencecache.picker.decisions import AbortReport, DecisionRecord, DecisionRecords
from inferencecache.picker.request import BadBodyError
from inferencecache.service.pick import PickAnswer, PickPlane
from inferencecache.transport.picker_convert import pool_name, qos_class, shortened
from inferencecache.transport.picker_metrics import PickerMetrics
from inferencecache.transport.picker_reader import BodyReader
from inferencecache.transport.structured_log import EventLog

_TOO_LATE: Final = AbortReport(reason="NOT_DISPATCHED", detail="the caller has given up")
"""Nobody hears of the answer, so nobody would ever report how it went."""


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a Pick says beside the body.

    Attributes:
        request_id: The caller's name for the request: that of the Pick, or else of the upload.
        tenant: Whose request it is.
        qos: How long it can wait.
        pool: Where to look; None for everything.
        headers: What the caller passes on of the request's own.
        deadline_ns: Monotonic time at which the caller gives up; None if it does not say.
    """

    request_id: str
    tenant: str
    qos: QosClass
    pool: PoolName | None
    headers: Mapping[str, str]
    deadline_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PickRunner:
    """Runs Picks.

    Attributes:
        plane: Bodies and decisions.
        reader: Parses bodies.
        chooser: Chooses destinations.
        may_lack_model: Whether a model could stand in where a body names none.
        records: Keeps how Picks came about.
        metrics: Counts answers.
        clock: Measures them.
        log: Told about each answer at DEBUG.
    """

    plane: PickPlane
    reader: BodyReader
    chooser: Chooser
    may_lack_model: Callable[[], bool]
    records: DecisionRecords
    metrics: PickerMetrics
    clock: Clock
    log: EventLog

    async def run(
        self,
        request: pb.PickRequest,
        headers: Mapping[str, str],
        remaining_s: float | None = None,
    ) -> PickAnswer:
        """Answer *request*.

        Args:
            request: What came.
            headers: What the caller passes on of the request's own.
            remaining_s: Seconds until the caller gives up; None if it does not say.

        Raises:
            InvalidRequestError: The id is 0.
            UnknownIdError: Nobody has it.
            UsedBodyError: Another Pick has had it.
        """
        started_ns = self.clock.monotonic_ns()
        body = self.plane.begin(request.body_stream_id)
        asked = _Asked(
            request_id=shortened(request.client_request_id) or body.client_request_id,
            tenant=request.tenant,
            qos=qos_class(request),
            pool=pool_name(request),
            headers=headers,
            deadline_ns=None if remaining_s is None else started_ns + int(remaining_s * NS_PER_S),
        )
        try:
            answer, chosen = await self._decide(body, asked)
        except BaseException:
            self.plane.drop(body)
            raise
        now_ns = self.clock.monotonic_ns()
        if asked.deadline_ns is not None and now_ns >= asked.deadline_ns:
            self.plane.abort(answer.response_id, _TOO_LATE)
        duration_ns = now_ns - started_ns
        self.metrics.picked(answer.outcome, answer.tier, asked.qos, duration_ns)
        self._record(asked, answer, chosen, duration_ns)
        return answer

    async def _decide(
        self, body: Body, asked: _Asked
    ) -> tuple[PickAnswer, Choice | Refusal | None]:
        try:
            question = await self._question(body, asked)
        except BadBodyError as error:
            return self.plane.refuse(body, Outcome.BAD_REQUEST, error.reason), None
        chosen = await self.chooser.choose(question)
        if isinstance(chosen, Choice):
            return self.plane.settle(body, question, chosen), chosen
        model = question.request.model
        return self.plane.refuse(body, chosen.outcome, chosen.reason, model), chosen

    async def _question(self, body: Body, asked: _Asked) -> Question:
        """Return what has to be chosen for; what may wait does not keep its bytes twice meanwhile.

        Raises:
            BadBodyError: The body is no inference request.
        """
        read = await self.reader.read(body.content, may_lack_model=self.may_lack_model())
        return Question(
            request=read.request,
            content=body.content,
            top_level=None if asked.qos is QosClass.DEFERRABLE else read.top_level,
            tenant=asked.tenant,
            qos=asked.qos,
            pool=asked.pool,
            client_request_id=asked.request_id,
            headers=asked.headers,
            deadline_ns=asked.deadline_ns,
        )

    def _record(
        self,
        asked: _Asked,
        answer: PickAnswer,
        chosen: Choice | Refusal | None,
        duration_ns: int,
    ) -> None:
        """Log the answer, and keep how it came about."""
        self.log.debug(
            "pick",
            client_request_id=asked.request_id,
            outcome=answer.outcome,
            reason=answer.reason,
            duration_ns=duration_ns,
        )
        if not self.records.is_kept:
            return
        choice = chosen if isinstance(chosen, Choice) else None
        self.records.add(
            DecisionRecord(
                request_id=asked.request_id,
                at_ns=self.clock.now_ns(),
                duration_ns=duration_ns,
                tenant=shortened(asked.tenant),
                qos=asked.qos,
                outcome=answer.outcome,
                reason=answer.reason,
                requested_model=shortened(answer.requested_model),
                target_model="" if choice is None else choice.target_model,
                destination="" if choice is None else choice.name,
                explanation=None if chosen is None else chosen.explanation,
            )
        )
