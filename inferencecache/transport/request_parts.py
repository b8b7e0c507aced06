"""The messages of a call that its client sends one by one.

The library's own iterator of them is a generator that refers to the call, which refers to it: a
cycle. It keeps the message it gave out last, of up to 16 MiB, until a garbage collector that looks
at everything comes by, where the call ends before the iterator does. This one keeps nothing.
"""

from collections.abc import AsyncIterator
from typing import final

import grpc

from inferencecache.transport.boundary import Context


@final
class RequestParts(AsyncIterator[object]):
    """Reads what a client sends, message by message.

    Args:
        context: The call.
    """

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    async def __anext__(self) -> object:
        """Wait for the next message.

        Raises:
            StopAsyncIteration: The client sends no more, or has gone.
        """
        message: object = await self._context.read()
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        return message
