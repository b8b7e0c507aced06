"""One request from the client's first byte to the end of its answer.

Rules of this file
    1. Whatever is picked is ended: by a final report, or by an Abort that says why.
    2. Nothing goes to the client before the destination has begun to answer; until then a request
       may be tried once more, from its beginning, if its body is still there.
    3. Reports are made and not waited for.
"""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Never

from aiohttp import web

from inferencecache.clock import NS_PER_MS, Clock
from inferencecache.gateway import (
    PICKER_DOWN,
    Failure,
    ReplayRoom,
    may_retry,
    printable,
    refusal_of_call,
    refusal_of_pick,
    refusal_of_provider,
    target_url,
)
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.settings.gateway import GatewaySettings
from inferencecache.transport.gateway_answer import AnswerPasser, BegunAnswer
from inferencecache.transport.gateway_attempt_log import AttemptLog
from inferencecache.transport.gateway_backends import Backends
from inferencecache.transport.gateway_body import ClientBody, PulledBody, ShortPullError
from inferencecache.transport.gateway_fault import (
    AnswerCutError,
    AttemptFailedError,
    PickerDownError,
    RefusedError,
)
from inferencecache.transport.gateway_metrics import GatewayMetrics
from inferencecache.transport.gateway_picker import PickerCallError, PickerClient
from inferencecache.transport.gateway_reports import ReportLine, Reports
from inferencecache.transport.gateway_target import Asked, target_of
from inferencecache.transport.gateway_upstream import Target, UpstreamError, Upstreams
from inferencecache.transport.structured_log import EventLog

MODEL_HEADER: Final = "X-Inference-Requested-Model"
DESTINATION_HEADER: Final = "X-Inference-Destination"
REASON_HEADER: Final = "X-Inference-Reason"

_HEADER_CHARS_MAX: Final = 1_024
_DESTINED: Final = frozenset({pb.PickResponse.OK, pb.PickResponse.DEGRADED})
_OUTCOMES: Final = pb.PickResponse.Outcome.DESCRIPTOR.values_by_number
_KEY_REFUSED: Final = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.FORBIDDEN}
)
_ANSWERS: Final = frozenset({2, 4, 5})
"""Hundreds of the statuses that a client is shown."""
_REFUSES_KEY: Final = refusal_of_provider(
    "backend_unauthorized", "The provider refuses the gateway's key."
)
_NO_ANSWER: Final = refusal_of_provider("upstream_unreachable", "The destination does not answer.")
_TOO_SLOW: Final = refusal_of_provider(
    "upstream_timeout", "The destination did not answer in time.", is_slow=True
)
_ODD_ANSWER: Final = refusal_of_provider("upstream_answer", "The destination sends no answer.")
_ABORTS: Final = {
    Failure.PULL_FAILED: "PULL_FAILED",
    Failure.UNRESOLVED: "BACKEND_UNRESOLVED",
    Failure.UNAUTHORIZED: "BACKEND_UNAUTHORIZED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeParts:
    """What all requests share.

    Attributes:
        settings: Everything the gateway can be told.
        picker: Says where requests go.
        reports: Takes what is said of them.
        backends: Resolves providers.
        upstreams: Connections to destinations.
        passer: Passes answers on.
        room: Where bodies are kept.
        metrics: Counts.
        clock: Measures.
        log: Told about each request at DEBUG.
        attempt_log: Told about attempts that came to nothing.
    """

    settings: GatewaySettings
    picker: PickerClient
    reports: Reports
    backends: Backends
    upstreams: Upstreams
    passer: AnswerPasser
    room: ReplayRoom
    metrics: GatewayMetrics
    clock: Clock
    log: EventLog
    attempt_log: AttemptLog


class Exchange:
    """Serves one request.

    Args:
        parts: What all requests share.
        request: As it came.
        asked: What its head says.
    """

    def __init__(self, parts: ExchangeParts, request: web.BaseRequest, asked: Asked) -> None:
        self._parts = parts
        self._request = request
        self._asked = asked

    async def run(self) -> web.StreamResponse:
        """Serve it; everything the client is to see has been sent when this returns.

        Raises:
            RefusedError: Nothing has been sent; the client is to be told so.
            ConnectionError: The connection has ended.
        """
        body = ClientBody(self._request, self._parts.settings.requests, self._parts.room)
        attempt = 1
        attempts_max = self._parts.settings.upstream.attempts_max
        try:
            while True:
                try:
                    return await self._attempt(body)
                except AttemptFailedError as error:
                    self._log_failed(error.failure, attempt, error.detail)
                    left = attempts_max - attempt
                    if not may_retry(error.failure, left, is_replayable=body.is_replayable):
                        raise RefusedError(error.refusal) from None
                    self._parts.metrics.retried(error.failure)
                    attempt += 1
                except PickerDownError:
                    return await self._fall_back(body)
        except AnswerCutError as error:
            self._log_failed(Failure.CUT, attempt, error.reason)
            raise
        finally:
            body.let_go()

    def _log_failed(self, failure: Failure, attempt: int, detail: str) -> None:
        request_id = self._asked.facts.request_id
        self._parts.attempt_log.failed(
            failure, request_id=request_id, attempt=attempt, detail=detail
        )

    async def _attempt(self, body: ClientBody) -> web.StreamResponse:
        picked = await self._choose(body)
        line = self._parts.reports.line(picked.response_id, self._asked.facts.request_id)
        try:
            target = await target_of(picked, self._asked, self._parts.backends)
            return await self._dispatch(target, picked, line, body)
        except AttemptFailedError as error:
            line.abort(_ABORTS.get(error.failure, "REASON_UNSPECIFIED"), error.detail)
            await line.told()  # or the next attempt would be led to the same place
            raise
        finally:
            line.abort("NOT_DISPATCHED")  # says nothing where an end was told

    async def _dispatch(
        self, target: Target, picked: pb.PickResponse, line: ReportLine, body: ClientBody
    ) -> web.StreamResponse:
        """Pull the body, send it on, and pass the answer on.

        Raises:
            AttemptFailedError: There is no answer for the client.
        """
        pull = self._parts.picker.pull(picked.response_id)
        pulled = PulledBody(pull, picked.body_total_bytes)
        try:
            await self._open(pulled)
            begun = await self._send(target, pulled, line, picked)
            try:
                body.let_go()
                return await self._parts.passer.run(self._request, begun)
            finally:
                begun.response.close()
        finally:
            pulled.close()

    async def _choose(self, body: ClientBody) -> pb.PickResponse:
        """Push the body and pick.

        Raises:
            RefusedError: There is no destination, or the body is not taken.
            AttemptFailedError: The picker has forgotten the body.
            PickerDownError: There is no picker.
        """
        facts, picker = self._asked.facts, self._parts.picker
        started_ns = self._parts.clock.monotonic_ns()
        try:
            stream_id = await picker.push(body.chunks(), facts.request_id, body.declared_bytes)
            picked = await self._pick(stream_id)
        except PickerCallError as error:
            self._parts.metrics.call_failed(error.method, error.status)
            self._judge(error)
        self._parts.metrics.chose(self._parts.clock.monotonic_ns() - started_ns)
        if picked.outcome not in _DESTINED:
            known = _OUTCOMES.get(picked.outcome)
            outcome = "UNSPECIFIED" if known is None else known.name
            raise RefusedError(refusal_of_pick(outcome, picked.reason))
        return picked

    async def _pick(self, stream_id: int) -> pb.PickResponse:
        """Pick; if the client leaves meanwhile, what is picked is let go all the same."""
        picking = asyncio.create_task(self._parts.picker.pick(stream_id, self._asked.facts))
        try:
            return await asyncio.shield(picking)
        except asyncio.CancelledError:
            picking.add_done_callback(self._let_go)
            raise

    def _let_go(self, picking: "asyncio.Task[pb.PickResponse]") -> None:
        if not picking.cancelled() and picking.exception() is None:
            response_id = picking.result().response_id
            if response_id:
                line = self._parts.reports.line(response_id, self._asked.facts.request_id)
                line.abort("NOT_DISPATCHED")

    def _judge(self, error: PickerCallError) -> Never:
        """Turn a failed call into what follows from it."""
        refusal = refusal_of_call(error.method, error.status, error.detail)
        if error.is_down:
            raise PickerDownError from None
        if error.is_stale:
            raise AttemptFailedError(Failure.STALE_ID, PICKER_DOWN, error.detail) from None
        raise RefusedError(refusal) from None

    async def _open(self, pulled: PulledBody) -> None:
        try:
            await pulled.open()
        except ShortPullError as error:
            raise AttemptFailedError(Failure.PULL_FAILED, PICKER_DOWN, error.detail) from None

    async def _send(
        self, target: Target, pulled: PulledBody, line: ReportLine, picked: pb.PickResponse
    ) -> BegunAnswer:
        """Send the body on and wait for the answer's first byte.

        Raises:
            AttemptFailedError: There is none, or none for the client.
        """
        started_ns = self._parts.clock.monotonic_ns()
        status = 0
        upstreams = self._parts.upstreams
        response = None
        try:
            response = await upstreams.send(target, pulled.chunks(), pulled.total_bytes)
            first = await upstreams.first_chunk(response)
            status = response.status
        except UpstreamError as error:
            if response is not None:
                response.close()
            if pulled.failure:
                failed = AttemptFailedError(Failure.PULL_FAILED, PICKER_DOWN, pulled.failure)
                raise failed from None
            self._answered(target, line, 0, started_ns)
            failure = Failure.SLOW if error.is_slow else Failure.UNREACHABLE
            refusal = _TOO_SLOW if error.is_slow else _NO_ANSWER
            raise AttemptFailedError(failure, refusal, error.reason) from None
        except BaseException:
            if response is not None:
                response.close()
            raise
        self._answered(target, line, status, started_ns)
        failed_by = _failure_of(status, is_provider=target.kind == "provider")
        if failed_by is not None:
            response.close()
            raise failed_by
        return BegunAnswer(
            response=response, first=first, headers=self._own_headers(picked), line=line
        )

    def _answered(
        self, target: Target, line: ReportLine | None, status: int, started_ns: int
    ) -> None:
        """Count the first byte of an answer, and report it."""
        duration_ns = self._parts.clock.monotonic_ns() - started_ns
        self._parts.metrics.answered(target.kind, status, duration_ns if status else None)
        if line is not None:
            line.first(duration_ns // NS_PER_MS, status)

    def _own_headers(self, picked: pb.PickResponse | None) -> dict[str, str]:
        """Return what the gateway adds to an answer."""
        requests = self._parts.settings.requests
        headers = {requests.request_id_header: self._asked.facts.request_id}
        if picked is None:
            return headers
        headers[MODEL_HEADER] = printable(picked.requested_model, _HEADER_CHARS_MAX)
        if requests.shows_decision:
            ref = picked.provider.backend_ref
            where = picked.local.endpoint or f"provider:{ref.namespace}/{ref.name}"
            headers[DESTINATION_HEADER] = where
            headers[REASON_HEADER] = printable(picked.reason, _HEADER_CHARS_MAX)
        return headers

    async def _fall_back(self, body: ClientBody) -> web.StreamResponse:
        """Send the request where all go without a picker.

        Raises:
            RefusedError: There is no such place, the body is gone, or there is no answer.
        """
        base = self._parts.settings.upstream.fallback_url
        if not base or not body.is_replayable:
            raise RefusedError(PICKER_DOWN)
        self._parts.metrics.fell_back()
        asked, upstreams = self._asked, self._parts.upstreams
        url = target_url(base, "", asked.path, asked.query)
        target = Target(kind="fallback", url=url, headers=asked.headers)
        started_ns = self._parts.clock.monotonic_ns()
        response = None
        try:
            response = await upstreams.send(target, body.chunks(), body.declared_bytes)
            first = await upstreams.first_chunk(response)
            self._answered(target, None, response.status, started_ns)
            failed_by = _failure_of(response.status, is_provider=False)
            if failed_by is not None:
                raise RefusedError(failed_by.refusal)
            begun = BegunAnswer(
                response=response, first=first, headers=self._own_headers(None), line=None
            )
            return await self._parts.passer.run(self._request, begun)
        except UpstreamError as error:
            self._answered(target, None, 0, started_ns)
            slow_or_not = _TOO_SLOW if error.is_slow else _NO_ANSWER
            raise RefusedError(body.refusal or slow_or_not) from None
        finally:
            if response is not None:
                response.close()


def _failure_of(status: int, *, is_provider: bool) -> AttemptFailedError | None:
    """Return why an answer with *status* is none for the client; None if it is one."""
    if is_provider and status in _KEY_REFUSED:
        return AttemptFailedError(Failure.UNAUTHORIZED, _REFUSES_KEY, f"status {status}")
    if status // 100 not in _ANSWERS:
        return AttemptFailedError(Failure.ODD_ANSWER, _ODD_ANSWER, f"status {status}")
    return None
