"""Pass an answer on to the client, chunk by chunk, and read along."""

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp import web

from inferencecache.clock import NS_PER_MS, Clock
from inferencecache.gateway import AnswerScan, Gaps, answer_headers
from inferencecache.transport.gateway_fault import AnswerCutError
from inferencecache.transport.gateway_metrics import GatewayMetrics
from inferencecache.transport.gateway_reports import ReportLine
from inferencecache.transport.gateway_upstream import UpstreamError, Upstreams

_HELD_UP_NS: Final = 5 * NS_PER_MS
"""A write that takes longer waited for the client, so the time until the next chunk says nothing of
the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunAnswer:
    """An answer of which head and first chunk are there.

    Attributes:
        response: The head.
        first: The first chunk; empty for a body of nothing.
        headers: What the gateway adds.
        line: Where reports go; None where nobody wants them.
    """

    response: aiohttp.ClientResponse
    first: bytes
    headers: dict[str, str] = field(default_factory=dict)
    line: ReportLine | None


class AnswerPasser:
    """Passes answers on.

    Args:
        upstreams: Reads them.
        metrics: Counts those that are cut off.
        clock: Measures gaps.
        scan_bytes_max: Most bytes of an answer that are remembered.
    """

    def __init__(
        self, upstreams: Upstreams, metrics: GatewayMetrics, clock: Clock, scan_bytes_max: int
    ) -> None:
        self._upstreams = upstreams
        self._metrics = metrics
        self._clock = clock
        self._scan_bytes_max = scan_bytes_max

    async def run(self, request: web.BaseRequest, begun: BegunAnswer) -> web.StreamResponse:
        """Pass *begun* on to whoever sent *request*, to its end.

        A cut answer ends the client's connection: it must not look like a whole one.

        Raises:
            AnswerCutError: The answer was cut off.
            ConnectionError: The client has gone.
        """
        response = begun.response
        scan = AnswerScan(response.headers.get("Content-Type", ""), self._scan_bytes_max)
        gaps = Gaps()
        out = web.StreamResponse(status=response.status)
        for name, value in answer_headers(response.headers.items()):
            out.headers.add(name, value)
        out.headers.update(begun.headers)
        try:
            await self._pass(request, out, begun, (scan, gaps))
        except UpstreamError as error:
            self._metrics.answer_cut()
            if begun.line is not None:
                begun.line.abort("REASON_UNSPECIFIED", f"the answer was cut off: {error.reason}")
            if request.transport is not None:
                request.transport.abort()
            raise AnswerCutError(error.reason) from None
        finally:
            _report_end(begun.line, response.status, scan, gaps)
        return out

    async def _pass(
        self,
        request: web.BaseRequest,
        out: web.StreamResponse,
        begun: BegunAnswer,
        readers: tuple[AnswerScan, Gaps],
    ) -> None:
        scan, gaps = readers
        chunk = begun.first
        await out.prepare(request)
        while chunk:
            arrived_ns = self._clock.monotonic_ns()
            known = scan.chunks
            scan.feed(chunk)
            for _ in range(scan.chunks - known):
                gaps.arrived(arrived_ns)
            await out.write(chunk)
            if self._clock.monotonic_ns() - arrived_ns > _HELD_UP_NS:
                gaps.interrupted()
            chunk = await self._upstreams.next_chunk(begun.response)
        await out.write_eof()


def _report_end(line: ReportLine | None, status: int, scan: AnswerScan, gaps: Gaps) -> None:
    """Tell of the end, whoever made it."""
    if line is None:
        return
    facts = scan.finish()
    if status >= HTTPStatus.BAD_REQUEST:
        line.abort("REASON_UNSPECIFIED", f"status {status}")
    else:
        line.final(facts, gaps.counts)
