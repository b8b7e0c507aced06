"""Count the calls that run on a port, and turn new ones away while it comes to its end.

Rules of this file: a call that has begun is never turned away; one that is learns UNAVAILABLE,
which callers may try again elsewhere. A call has left when the library has sent its status. What is
sent in parts is read to its end, without effect, before it is turned away.

Streams and other calls are counted apart. Streams may stay open for hours; the others are short,
so while a port waits for its streams it still answers them.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final, NoReturn

import grpc

from inferencecache.transport.boundary import Context
from inferencecache.transport.request_parts import RequestParts
from inferencecache.transport.rpc_table import Behaviour, RpcHandler, WrittenStream

_GOING: Final = "the server is shutting down; try again"


class CallGate:
    """Lets calls through to their handlers, until it is closed."""

    def __init__(self) -> None:
        self._calls = _Passage()
        self._streams = _Passage()

    def guarded(self, handler: RpcHandler) -> RpcHandler:
        """Return *handler* behind the gate."""
        kind = (handler.request_streaming, handler.response_streaming)
        behaviour = getattr(handler, _BEHAVIOURS[kind])
        is_stream = any(kind) or isinstance(handler, WrittenStream)
        passage = self._streams if is_stream else self._calls
        return _MAKERS[kind](
            passage.through(behaviour, is_sent_in_parts=handler.request_streaming),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def close_to_streams(self) -> None:
        """Turn new streams away."""
        self._streams.is_open = False

    def close(self) -> None:
        """Turn every new call away."""
        self._streams.is_open = self._calls.is_open = False

    async def wait_streams(self, limit_s: float) -> None:
        """Wait until no stream is open, at most *limit_s* seconds."""
        await self._streams.wait_empty(limit_s)

    async def wait_calls(self, limit_s: float) -> None:
        """Wait until no other call runs, at most *limit_s* seconds."""
        await self._calls.wait_empty(limit_s)


class _Passage:
    """One kind of call: how many are in, and whether more may come.

    Attributes:
        is_open: Whether more may come.
    """

    def __init__(self) -> None:
        self.is_open = True
        self._inside = 0
        self._when_empty: asyncio.Event | None = None

    def through(self, behaviour: Behaviour, *, is_sent_in_parts: bool) -> Behaviour:
        """Return *behaviour* with every call of it counted.

        Args:
            behaviour: What answers.
            is_sent_in_parts: Whether it is given an iterator of requests.
        """
        if inspect.isasyncgenfunction(behaviour):

            async def pass_stream(request: object, context: Context) -> AsyncIterator[object]:
                request = RequestParts(context) if is_sent_in_parts else request
                if not self.is_open:
                    await _turn_away(request, context, is_sent_in_parts=is_sent_in_parts)
                self._enter(context)
                async for message in behaviour(request, context):
                    yield message

            return pass_stream

        async def pass_call(request: object, context: Context) -> object:
            request = RequestParts(context) if is_sent_in_parts else request
            if not self.is_open:
                await _turn_away(request, context, is_sent_in_parts=is_sent_in_parts)
            self._enter(context)
            return await behaviour(request, context)

        return pass_call

    async def wait_empty(self, limit_s: float) -> None:
        """Wait until none is in, at most *limit_s* seconds."""
        if not self._inside:
            return
        self._when_empty = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._when_empty.wait()

    def _enter(self, context: Any) -> None:  # noqa: ANN401 - its stubs want another callback
        self._inside += 1
        context.add_done_callback(self._leave)

    def _leave(self, _context: object) -> None:
        self._inside -= 1
        if not self._inside and self._when_empty is not None:
            self._when_empty.set()


async def _turn_away(
    request: Any,  # noqa: ANN401 - a message, or what gives them out
    context: Context,
    *,
    is_sent_in_parts: bool,
) -> NoReturn:
    """End a call with UNAVAILABLE, once its caller has sent everything.

    The library tells a caller that is still sending that its own call broke, and not our status.
    """
    if is_sent_in_parts:
        async for _ in request:
            pass
    await context.abort(grpc.StatusCode.UNAVAILABLE, _GOING)
    raise AssertionError("abort raises")


_BEHAVIOURS: Final = {
    (False, False): "unary_unary",
    (False, True): "unary_stream",
    (True, False): "stream_unary",
    (True, True): "stream_stream",
}
_MAKERS: Final[dict[tuple[bool, bool], Callable[..., RpcHandler]]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
