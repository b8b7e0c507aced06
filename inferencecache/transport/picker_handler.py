"""The Picker service: one thin method per RPC, named after it in snake case."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

import grpc

from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.bodies import Chunk
from inferencecache.picker.decisions import usable
from inferencecache.service.access import Access, AccessDeniedError
from inferencecache.settings.picker import PickerSettings
from inferencecache.transport.boundary import Boundary
from inferencecache.transport.grpc_access import OpenGuard, TenantGuard, require, require_any
from inferencecache.transport.picker_chunk import OutgoingChunk, read_chunk
from inferencecache.transport.picker_convert import (
    abort_report,
    check_identifiers,
    final_token_report,
    first_token_report,
    pick_response,
    shortened,
)
from inferencecache.transport.picker_download import send_body
from inferencecache.transport.picker_headers import passed_headers
from inferencecache.transport.picker_pick import PickRunner
from inferencecache.transport.picker_upload import Uploads
from inferencecache.transport.quiet_turns import QuietTurns
from inferencecache.transport.rpc_table import RpcHandler, rpc_handlers

PICKER_SERVICE: Final = pb.DESCRIPTOR.services_by_name["Picker"]

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerHandlerParts:
    """What the handler works with.

    Attributes:
        runner: Runs Picks; its plane and metrics serve the other calls, too.
        settings: Limits.
        guard: Decides which tenants a caller may pick for.
    """

    runner: PickRunner
    settings: PickerSettings
    guard: TenantGuard = field(default_factory=OpenGuard)


class PickerHandler:
    """Answers the service's RPCs: convert, call, convert back.

    Args:
        parts: Its collaborators.
    """

    def __init__(self, parts: PickerHandlerParts) -> None:
        self._runner = parts.runner
        self._plane = parts.runner.plane
        self._metrics = parts.runner.metrics
        self._log = parts.runner.log
        settings = parts.settings
        self._quiet = QuietTurns(parts.runner.clock, settings.begin_wait_ns)
        self._uploads = Uploads(
            self._plane, self._metrics, self._log, self._quiet, settings.upload_idle_ns
        )
        self._chunk_bytes = min(settings.pull_chunk_bytes, settings.chunk_bytes_max)
        self._identifier_bytes_max = settings.identifier_bytes_max
        self._guard = parts.guard

    async def push_body(
        self, request_iterator: AsyncIterator[Chunk | None], context: Context
    ) -> pb.PushBodyResponse:
        """Take a body in; for which tenant is said later, by `Pick`."""
        require_any(self._guard, "PushBody", context, Access.READ)
        return await self._uploads.receive(request_iterator, context)

    async def pick(self, request: pb.PickRequest, context: Context) -> pb.PickResponse:
        """Decide where a request goes."""
        check_identifiers(request, self._identifier_bytes_max)
        try:
            require(self._guard, "Pick", context, (Access.READ, request.tenant))
        except AccessDeniedError:
            self._plane.forfeit(request.body_stream_id)
            raise
        remaining_s = context.time_remaining()
        answer = await self._runner.run(request, passed_headers(context), remaining_s)
        return pick_response(answer)

    async def pull_body(self, request: pb.PullBodyRequest, context: Context) -> OutgoingChunk:
        """Hand the body out; its last chunk is the answer."""
        body = self._plane.pull(request.response_id)
        return await send_body(self._plane, body, context, self._chunk_bytes)

    async def report_first_token(
        self, request: pb.ReportFirstTokenRequest, _context: Context
    ) -> pb.ReportFirstTokenResponse:
        """Learn that the destination has begun to answer; only what is said to it can wait."""
        is_known = self._plane.first_token(request.response_id, first_token_report(request))
        self._metrics.reported("ReportFirstToken", is_known=is_known)
        await self._quiet.take()
        return pb.ReportFirstTokenResponse(acknowledged=is_known)

    async def report_final_token(
        self, request: pb.ReportFinalTokenRequest, _context: Context
    ) -> pb.ReportFinalTokenResponse:
        """Learn that the answer is complete; likewise."""
        prompt_tokens_max = self._plane.prompt_tokens_max(request.response_id)
        report, flaws = usable(final_token_report(request), prompt_tokens_max)
        is_known = self._plane.final_token(request.response_id, report)
        self._metrics.reported("ReportFinalToken", is_known=is_known)
        if is_known:
            self._metrics.flawed(flaws)
        await self._quiet.take()
        return pb.ReportFinalTokenResponse(acknowledged=is_known)

    async def abort(self, request: pb.AbortRequest, _context: Context) -> pb.AbortResponse:
        """Let go of a request that will not be dispatched."""
        report = abort_report(request)
        is_released = self._plane.abort(request.response_id, report)
        self._metrics.aborted(report.reason)
        name = shortened(request.client_request_id)
        self._log.debug("abort", client_request_id=name, reason=report.reason, detail=report.detail)
        return pb.AbortResponse(released=is_released)


def picker_rpc_handlers(handler: PickerHandler, boundary: Boundary) -> dict[str, RpcHandler]:
    """Return the handlers of the Picker service."""
    return rpc_handlers(PICKER_SERVICE, handler, boundary, readers={"PushBody": read_chunk})
