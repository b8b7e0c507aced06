"""Take a body in, and tell a clean end from one that only looks like it.

A stream that was reset, or whose message was too large for the transport, ends for its reader like
one that was closed; the cancellation follows a moment later. So nothing is believed before the
initial metadata could be sent, which takes a round through the library and fails on a call that is
over. A call's own ``cancelled`` is of no use: it knows only of cancellations by its handler.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from inferencecache.clock import NS_PER_S
from inferencecache.errors import InvalidRequestError
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.bodies import Body, Chunk
from inferencecache.picker.faults import IdleUploadError
from inferencecache.service.pick import PickPlane
from inferencecache.transport.picker_convert import declared_bytes, request_id
from inferencecache.transport.picker_metrics import PickerMetrics, push_result
from inferencecache.transport.quiet_turns import QuietTurns
from inferencecache.transport.structured_log import EventLog

Context = grpc.aio.ServicerContext[Any, Any]


class Uploads:
    """Takes bodies in.

    Args:
        plane: Where they belong.
        metrics: Counts them.
        log: Told about each at DEBUG.
        quiet: Gives each its turn to begin.
        idle_ns: Longest silence from then on, in nanoseconds.
    """

    def __init__(
        self,
        plane: PickPlane,
        metrics: PickerMetrics,
        log: EventLog,
        quiet: QuietTurns,
        idle_ns: int,
    ) -> None:
        self._plane = plane
        self._metrics = metrics
        self._log = log
        self._quiet = quiet
        self._idle_s = idle_ns / NS_PER_S

    async def receive(
        self, chunks: AsyncIterator[Chunk | None], context: Context
    ) -> pb.PushBodyResponse:
        """Take one body in and name it.

        Args:
            chunks: The call's bytes; None stands for one that did not parse.
            context: The call.

        Raises:
            InvalidRequestError: A header or message makes no sense, or the length is not true.
            BudgetError: There is no room.
            IdleUploadError: The caller fell silent.
            DrainingError: The server is about to end.
        """
        metadata = context.invocation_metadata() or ()
        name = request_id(metadata)
        try:
            await self._quiet.take()
            body = self._plane.open_upload(declared_bytes(metadata))
            body.client_request_id = name
            pushed = await self._receive(body, chunks, context)
        except BaseException as error:
            self._finish(name, push_result(error), 0)
            raise
        self._finish(name, "ok", pushed.total_bytes)
        return pushed

    async def _receive(
        self, body: Body, chunks: AsyncIterator[Chunk | None], context: Context
    ) -> pb.PushBodyResponse:
        try:
            await _append_all(self._plane, body, chunks, self._idle_s)
            await context.send_initial_metadata(())
            total_bytes = body.charged_bytes
            stream_id = self._plane.complete(body)
        except BaseException:
            self._plane.bodies.retract(body)
            raise
        return pb.PushBodyResponse(stream_id=stream_id, total_bytes=total_bytes)

    def _finish(self, name: str, result: str, total_bytes: int) -> None:
        self._metrics.push_ended(result)
        self._log.debug("push", client_request_id=name, result=result, bytes=total_bytes)


async def _append_all(
    plane: PickPlane, body: Body, chunks: AsyncIterator[Chunk | None], idle_s: float
) -> None:
    clock = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(idle_s) as silence:
            async for chunk in chunks:
                if chunk is None:
                    raise InvalidRequestError(
                        field="BodyChunk", value="bytes", allowed="a message that parses"
                    )
                plane.append(body, chunk)
                silence.reschedule(clock() + idle_s)
    except TimeoutError:
        raise IdleUploadError from None
