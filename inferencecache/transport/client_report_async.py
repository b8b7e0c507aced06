"""Deliver reports over a channel of the running event loop, with proof.

The stream is ended to get its Ack, as in :mod:`inferencecache.transport.client_report`; here
``write`` itself waits while the server reads slowly, so no queue of ours is needed.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from itertools import islice
from typing import Any, Never, TypeVar

import grpc
import grpc.aio

from inferencecache.clock import NS_PER_S
from inferencecache.settings.client import ClientSettings
from inferencecache.transport.client_channel import EVENT_METHOD, REPORT_METHOD
from inferencecache.transport.client_codec import decode_ack, encode_removal, encode_update
from inferencecache.transport.client_values import NO_ACK, CacheUpdate, DeliveryError, Removal
from inferencecache.transport.lookup_client import is_cancelled_from_outside
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

_T = TypeVar("_T")
_Stream = grpc.aio.StreamUnaryCall[pb.CacheStateUpdate, pb.Ack | None]


class AsyncReportLine:
    """One ordered line of reports to a server; one caller at a time.

    Args:
        channel: An open channel of the running loop, shared or not.
        target: Address of the server, for messages.
        settings: Bounds and timeouts.
    """

    def __init__(self, channel: grpc.aio.Channel, target: str, settings: ClientSettings) -> None:
        self._report: grpc.aio.StreamUnaryMultiCallable[pb.CacheStateUpdate, pb.Ack | None] = (
            channel.stream_unary(REPORT_METHOD, pb.CacheStateUpdate.SerializeToString, decode_ack)
        )
        self._publish: grpc.aio.UnaryUnaryMultiCallable[pb.CacheEvent, pb.Ack | None] = (
            channel.unary_unary(EVENT_METHOD, pb.CacheEvent.SerializeToString, decode_ack)
        )
        self._target = target
        self._events_max = settings.events_in_flight_max
        self._timeout_s = settings.delivery_timeout_ns / NS_PER_S
        self._call: _Stream | None = None
        self._unconfirmed = 0

    @property
    def unconfirmed(self) -> int:
        """Return how many updates were handed over since the last proof."""
        return self._unconfirmed

    async def send(self, update: CacheUpdate) -> None:
        """Write *update* to the open stream, opening one if need be.

        Raises:
            DeliveryError: The stream broke, or the server takes nothing for too long.
            InvalidRequestError: *update* does not fit the wire.
        """
        message = encode_update(update)
        self._unconfirmed += 1
        await self._guarded(self._write(message))

    async def confirm(self) -> None:
        """End the stream and wait for the Ack; do nothing if nothing is unconfirmed.

        Raises:
            DeliveryError: There was no Ack, or it came before the end or refused.
        """
        if self._call is not None:
            self._check(await self._guarded(self._finish(self._call)))
            self._reset()

    async def publish(self, removals: Iterable[Removal]) -> None:
        """Publish *removals* and wait for every Ack; their order among themselves is free.

        Raises:
            DeliveryError: One of them was not acknowledged.
            InvalidRequestError: One of them does not fit the wire.
        """
        pending = iter(removals)
        while batch := [encode_removal(r) for r in islice(pending, self._events_max)]:
            self._unconfirmed += len(batch)
            for ack in await self._guarded(self._publish_batch(batch)):
                self._check(ack)
            self._unconfirmed -= len(batch)

    def close(self) -> None:
        """Drop what is unconfirmed and free the stream."""
        if self._call is not None:
            self._call.cancel()
        self._reset()

    async def _write(self, message: pb.CacheStateUpdate) -> None:
        if self._call is None:
            self._call = self._report()
        try:
            await self._call.write(message)
        except grpc.aio.AioRpcError as error:
            # A failed write hides the status of the stream behind an INTERNAL of the library's own.
            if error.code() is not grpc.StatusCode.INTERNAL:
                raise
            self._raise("STREAM_BROKEN", "the stream ended while a report was written to it")

    async def _finish(self, call: _Stream) -> pb.Ack | None:
        if call.done():
            await self._raise_end(call)
        await call.done_writing()
        return await call

    async def _publish_batch(self, batch: list[pb.CacheEvent]) -> list[pb.Ack | None]:
        return await asyncio.gather(*(self._publish_one(message) for message in batch))

    async def _publish_one(self, message: pb.CacheEvent) -> pb.Ack | None:
        return await self._publish(message)

    async def _guarded(self, step: Coroutine[Any, Any, _T]) -> _T:
        """Run one *step* within the timeout; turn every failure of the wire into our error."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await step
        except grpc.aio.AioRpcError as error:
            self._raise(error.code().name, error.details() or "")
        except grpc.aio.UsageError as error:
            self._raise("CLOSED", str(error))
        except TimeoutError:
            self._raise("DEADLINE_EXCEEDED", f"no progress for {self._timeout_s:g} s")
        except asyncio.InvalidStateError:
            await self._raise_end(self._call)
        except asyncio.CancelledError:
            if is_cancelled_from_outside():
                self.close()
                raise
            self._raise("CLOSED", "the connection was closed during the call")

    async def _raise_end(self, call: _Stream | None) -> Never:
        """Raise for a stream that the server ended while we were still writing."""
        assert call is not None, "only an open stream can end"  # noqa: S101 - ours
        code = await call.code()
        if code is grpc.StatusCode.OK:
            self._raise("ENDED_EARLY", "the server ended the stream before its last report")
        self._raise(code.name, await call.details() or "")

    def _check(self, ack: pb.Ack | None) -> None:
        if ack is None:
            self._raise("INTERNAL", NO_ACK)
        if not ack.accepted:
            self._raise("NOT_ACCEPTED", ack.reason_code or "the server refused")

    def _raise(self, status: str, detail: str) -> Never:
        unconfirmed = self._unconfirmed
        self.close()
        raise DeliveryError(
            target=self._target, status=status, detail=detail, unconfirmed=unconfirmed
        )

    def _reset(self) -> None:
        self._call = None
        self._unconfirmed = 0
