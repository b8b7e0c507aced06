"""Tell the picker how requests went, behind everybody's back: no answer waits for a report.

Theory of operation: what is said of one request is sent in order, by one task that lives as long as
there is something to say. All requests share one limit; a report beyond it is dropped and counted,
and the picker lets go of its request by time.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from inferencecache.gateway import GAP_LAYOUT, AnswerFacts
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.transport.gateway_picker import PickerCallError, PickerClient, Report, method_of

_UINT32_MAX: Final = 2**32 - 1
_DETAIL_CHARS_MAX: Final = 200


class Reports:
    """All reports of a gateway.

    Args:
        picker: Takes them.
        count: Told of each by method and result.
        waiting_max: Most that wait.
    """

    def __init__(
        self, picker: PickerClient, count: Callable[[str, str], None], waiting_max: int
    ) -> None:
        self._picker = picker
        self._count = count
        self._waiting_max = waiting_max
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """How many wait for the picker."""
        return self._waiting

    def line(self, response_id: int, request_id: str) -> "ReportLine":
        """Return where the reports about one request go."""
        return ReportLine(self, response_id, request_id)

    async def drained(self, timeout_s: float) -> None:
        """Wait until all are sent, but no longer than *timeout_s*; then drop the rest."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def take(self, line: "ReportLine", report: Report) -> None:
        """Send *report* after the others of its line."""
        if self._waiting >= self._waiting_max:
            self._count(method_of(report), "dropped")
            return
        self._waiting += 1
        line.waiting.append(report)
        if line.sending is None:
            line.sending = asyncio.create_task(self._send(line), name="gateway-report")
            self._tasks.add(line.sending)
            line.sending.add_done_callback(self._tasks.discard)

    async def _send(self, line: "ReportLine") -> None:
        try:
            while line.waiting:
                report = line.waiting[0]
                self._count(method_of(report), await self._result_of(report))
                line.waiting.popleft()
                self._waiting -= 1
        finally:
            line.sending = None
            self._waiting -= len(line.waiting)
            line.waiting.clear()

    async def _result_of(self, report: Report) -> str:
        try:
            return "ok" if await self._picker.report(report) else "unknown"
        except PickerCallError:
            return "failed"


class ReportLine:
    """What is said of one request: one first token at most, and one end.

    Args:
        reports: Where it goes.
        response_id: The picker's name for the request.
        request_id: The client's.

    Attributes:
        waiting: Reports to be sent.
        sending: The task that is at it; None if there is nothing to send.
        is_begun: Whether a first token was told.
        is_ended: Whether an end was told.
    """

    def __init__(self, reports: Reports, response_id: int, request_id: str) -> None:
        self._reports = reports
        self._response_id = response_id
        self._request_id = request_id
        self.waiting: deque[Report] = deque()
        self.sending: asyncio.Task[None] | None = None
        self.is_begun = False
        self.is_ended = False

    async def told(self) -> None:
        """Wait until everything that was said so far has arrived, or could not be sent in time."""
        if self.sending is not None:
            await asyncio.wait({self.sending})

    def first(self, ttft_ms: int, status: int) -> None:
        """Tell of the first byte of an answer, or with status 0 of none."""
        if self.is_begun or self.is_ended:
            return
        self.is_begun = True
        report = pb.ReportFirstTokenRequest(
            response_id=self._response_id,
            observed_ttft_ms=min(ttft_ms, _UINT32_MAX),
            upstream_status=status,
        )
        self._reports.take(self, report)

    def final(self, facts: AnswerFacts, gaps: tuple[int, ...]) -> None:
        """Tell of the end of an answer."""
        if self.is_ended:
            return
        self.is_ended = True
        report = pb.ReportFinalTokenRequest(
            response_id=self._response_id,
            model=_text(facts.model),
            prompt_tokens=facts.prompt_tokens,
            completion_tokens=facts.completion_tokens,
            cached_tokens=facts.cached_tokens,
            itl_bucket_counts=gaps,
            itl_bucket_layout=GAP_LAYOUT if gaps else 0,
        )
        self._reports.take(self, report)

    def abort(self, reason: str, detail: str = "") -> None:
        """Tell that the request ends without an answer; *reason* as the proto names it."""
        if self.is_ended:
            return
        self.is_ended = True
        report = pb.AbortRequest(
            response_id=self._response_id,
            reason=pb.AbortRequest.Reason.Value(reason),
            detail=detail[:_DETAIL_CHARS_MAX],
            client_request_id=self._request_id,
        )
        self._reports.take(self, report)


def _text(text: str) -> str:
    """Return *text* as a message may carry it: JSON can say halves of characters."""
    return text[:_MODEL_CHARS_MAX].encode("utf-8", "replace").decode()


_MODEL_CHARS_MAX: Final = 1_024
