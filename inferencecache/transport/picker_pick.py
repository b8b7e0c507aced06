"""One Pick: use the id up, read the body, choose, answer."""

from dataclasses import dataclass

from inferencecache.clock import Clock
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.bodies import Body
from inferencecache.picker.choice import Choice, Chooser, Outcome, Question
from inferencecache.picker.request import BadBodyError
from inferencecache.service.pick import PickAnswer, PickPlane
from inferencecache.transport.picker_convert import pool_name, qos_class, shortened
from inferencecache.transport.picker_metrics import PickerMetrics
from inferencecache.transport.picker_reader import BodyReader
from inferencecache.transport.structured_log import EventLog


@dataclass(frozen=True, slots=True, kw_only=True)
class PickRunner:
    """Runs Picks.

    Attributes:
        plane: Bodies and decisions.
        reader: Parses bodies.
        chooser: Chooses destinations.
        metrics: Counts answers.
        clock: Measures them.
        log: Told about each answer at DEBUG.
    """

    plane: PickPlane
    reader: BodyReader
    chooser: Chooser
    metrics: PickerMetrics
    clock: Clock
    log: EventLog

    async def run(self, request: pb.PickRequest) -> PickAnswer:
        """Answer *request*.

        Raises:
            InvalidRequestError: The id is 0.
            UnknownIdError: Nobody has it.
            UsedBodyError: Another Pick has had it.
        """
        started_ns = self.clock.monotonic_ns()
        body = self.plane.begin(request.body_stream_id)
        try:
            answer = await self._decide(body, request)
        except BaseException:
            self.plane.drop(body)
            raise
        duration_ns = self.clock.monotonic_ns() - started_ns
        self.metrics.picked(answer.outcome, qos_class(request), duration_ns)
        self.log.debug(
            "pick",
            client_request_id=shortened(request.client_request_id),
            outcome=answer.outcome.value,
            reason=answer.reason,
            duration_ns=duration_ns,
        )
        return answer

    async def _decide(self, body: Body, request: pb.PickRequest) -> PickAnswer:
        try:
            parsed = await self.reader.read(body.content)
        except BadBodyError as error:
            return self.plane.refuse(body, Outcome.BAD_REQUEST, error.reason)
        question = Question(
            request=parsed,
            content=body.content,
            tenant=request.tenant,
            qos=qos_class(request),
            pool=pool_name(request),
            client_request_id=shortened(request.client_request_id),
        )
        choice = await self.chooser.choose(question)
        if isinstance(choice, Choice):
            return self.plane.settle(body, question, choice)
        return self.plane.refuse(body, choice.outcome, choice.reason, parsed.model)
