"""A gateway for the benchmarks: whole requests, halves of requests, and what they take."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from random import Random
from time import perf_counter
from typing import Protocol

import grpc

from benchmarks.measure import require
from benchmarks.messages import EMPTY_CALL, as_bytes
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.kinference.v1 import picker_pb2_grpc as pb_grpc

CHUNK_BYTES = 256 * 1_024

ABANDON_POINTS = 4
"""Amid the upload, before the Pick, after it, after an Abort."""

_PICKED = 2


def body_of(size: int) -> bytes:
    """Return a body of *size* bytes."""
    head, tail = b'{"model":"m","prompt":"', b'"}'
    return head + b"x" * (size - len(head) - len(tail)) + tail


def messages_of(body: bytes) -> list[bytes]:
    """Return *body* as encoded chunks, so that a client's own work is not measured."""
    starts = range(0, len(body), CHUNK_BYTES)
    chunks = (body[start : start + CHUNK_BYTES] for start in starts)
    return [pb.BodyChunk(chunk=chunk).SerializeToString() for chunk in chunks]


class Calls(Protocol):
    """What a request takes of a picker."""

    async def push(self, messages: list[bytes]) -> int:
        """Push a body and return its stream_id."""
        ...

    async def pick(self, stream_id: int) -> pb.PickResponse:
        """Pick."""
        ...

    async def pull(self, picked: pb.PickResponse) -> None:
        """Pull a body and throw it away."""
        ...


class Gateway:
    """Calls one picker by gRPC's own client.

    Args:
        channel: Its connection.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.stub = pb_grpc.PickerStub(channel)
        self._push = channel.stream_unary(
            "/kinference.v1.Picker/PushBody",
            response_deserializer=pb.PushBodyResponse.FromString,
        )
        self._empty = channel.unary_unary(EMPTY_CALL, as_bytes, as_bytes)
        self._pull = channel.unary_stream(
            "/kinference.v1.Picker/PullBody",
            request_serializer=pb.PullBodyRequest.SerializeToString,
        )

    async def push(self, messages: list[bytes]) -> int:
        """Push a body and return its stream_id."""
        return int((await self._push(_each(messages))).stream_id)

    async def pick(self, stream_id: int) -> pb.PickResponse:
        """Pick."""
        return await self.stub.Pick(pb.PickRequest(body_stream_id=stream_id))

    async def pull(self, picked: pb.PickResponse) -> None:
        """Pull a body and throw it away."""
        total = 0
        async for message in self._pull(pb.PullBodyRequest(response_id=picked.response_id)):
            total += len(message)
        require(total >= picked.body_total_bytes, "the whole body came back")

    async def nothing(self) -> None:
        """Make a call that does nothing."""
        await self._empty(b"")

    async def finish(self, picked: pb.PickResponse) -> None:
        """Pull a body and report the end of its request."""
        await self.pull(picked)
        await self.stub.ReportFinalToken(pb.ReportFinalTokenRequest(response_id=picked.response_id))

    async def whole(self, messages: list[bytes]) -> None:
        """Push, pick, pull and report."""
        await self.finish(await self.pick(await self.push(messages)))

    async def abandon(self, messages: list[bytes], point: int) -> None:
        """Begin a request and stop somewhere; one that took too long has stopped already."""
        with suppress(grpc.aio.AioRpcError):
            await self._abandon(messages, point)

    async def _abandon(self, messages: list[bytes], point: int) -> None:
        if point == 0:
            call = self._push()
            await call.write(messages[0])
            call.cancel()
            return
        stream_id = await self.push(messages)
        if point < _PICKED:
            return
        picked = await self.pick(stream_id)
        if point > _PICKED:
            await self.stub.Abort(pb.AbortRequest(response_id=picked.response_id))


async def at_once(count: int, work: list[Coroutine[None, None, None]]) -> None:
    """Run *work*, coroutines, at most *count* at a time."""
    limit = asyncio.Semaphore(count)

    async def limited(one: Coroutine[None, None, None]) -> None:
        async with limit:
            await one

    await asyncio.gather(*map(limited, work))


async def paced_picks(calls: Calls, body: list[bytes], per_second: int, count: int) -> list[float]:
    """Pick at random moments, *per_second* on average; return each Pick's time in ms."""
    random = Random(7)
    times: list[float] = []

    async def one() -> None:
        stream_id = await calls.push(body)
        started = perf_counter()
        picked = await calls.pick(stream_id)
        times.append((perf_counter() - started) * 1_000)
        await calls.pull(picked)

    tasks = []
    for _ in range(count):
        tasks.append(asyncio.create_task(one()))
        await asyncio.sleep(random.expovariate(per_second))
    await asyncio.gather(*tasks)
    return times


async def _each(messages: list[bytes]) -> AsyncIterator[bytes]:
    for message in messages:
        yield message
