"""The calls that load a server: by the benchmarks' light client, or by gRPC's own for Python."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Protocol

import grpc

from benchmarks.messages import as_bytes
from benchmarks.wire import RefusedError, wire_connection


class Stream(Protocol):
    """A call of many messages."""

    async def put(self, message: bytes) -> None:
        """Send one message."""
        ...

    async def finish(self) -> bytes:
        """End it and return the answer.

        Raises:
            RefusedError: It ended in another status than OK.
        """
        ...


class Calls(Protocol):
    """One connection; a call that ends in another status than OK raises RefusedError."""

    def call(self, path: str, message: bytes) -> Awaitable[bytes]:
        """Make a call of one message to ``/service/method``."""
        ...

    def stream(self, path: str) -> Stream:
        """Begin a call of many messages."""
        ...


@asynccontextmanager
async def load_calls(target: str, *, by_grpc: bool) -> AsyncIterator[Calls]:
    """Connect to *target* for the length of the block.

    Args:
        target: Host and port.
        by_grpc: Whether by gRPC's own client.
    """
    if by_grpc:
        async with grpc.aio.insecure_channel(target) as channel:
            await channel.channel_ready()
            yield _GrpcCalls(channel)
    else:
        async with wire_connection(target) as connection:
            yield connection


class _GrpcCalls:
    """Calls by gRPC's own client."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self._methods: dict[str, grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = {}

    def call(self, path: str, message: bytes) -> Awaitable[bytes]:
        method = self._methods.get(path)
        if method is None:
            method = self._methods[path] = self._channel.unary_unary(path, as_bytes, as_bytes)
        return _answer(method(message))

    def stream(self, path: str) -> Stream:
        return _GrpcStream(self._channel.stream_unary(path, as_bytes, as_bytes)())


class _GrpcStream:
    """A call of many messages by gRPC's own client."""

    def __init__(self, call: grpc.aio.StreamUnaryCall[bytes, bytes]) -> None:
        self._call = call

    async def put(self, message: bytes) -> None:
        await self._call.write(message)

    async def finish(self) -> bytes:
        await self._call.done_writing()
        return await _answer(self._call)


async def _answer(call: Awaitable[bytes]) -> bytes:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise RefusedError(f"{error.code().name} {error.details()}") from error
