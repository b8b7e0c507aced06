"""From a service's descriptor to the handlers a server needs; no method can be forgotten.

Rules of this file: the descriptor says which methods there are and of which kind; a handler object
has one coroutine function per method, or an async iterator for a stream of answers, named after it
in snake case; every method but those that guard themselves runs inside the boundary.

A coroutine function for a stream of answers writes them as bytes, all but the last: that it
returns. The library sends what is returned together with the status; what an iterator gives out
goes by itself, and then the status does. On the wire both look alike.
"""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from operator import methodcaller
from traceback import clear_frames
from typing import Any, Final, NoReturn, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from inferencecache.transport.boundary import Boundary, Context
from inferencecache.transport.deserialize import lenient

RpcHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
"""What a server needs of one method."""

Behaviour = Callable[..., Any]
"""A method of a handler, as the library calls it: with a request or an iterator, and a context."""

Reader = Callable[[bytes], object]
"""Makes a request of received bytes, None where they do not parse; never raises."""

_SERIALIZE: Final = methodcaller("SerializeToString")
"""Makes bytes of a message, without a Python call."""

_LAST_WORDS_S: Final = 0.1
"""How long a caller of a stream that is refused may go on sending before it is told."""

_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class WrittenStream(grpc.RpcMethodHandler):  # type: ignore[type-arg] # generic in its stub alone
    """A method with a stream of answers that the library takes for one with a single answer.

    Args:
        behaviour: Writes all answers but the last, and returns that.
        reader: Makes requests of received bytes.
    """

    request_streaming = False
    response_streaming = False
    unary_stream = stream_unary = stream_stream = None

    def __init__(self, behaviour: Behaviour, reader: Reader) -> None:
        self.unary_unary = behaviour
        self.request_deserializer = reader
        self.response_serializer = _SERIALIZE


def attribute_of(method_name: str) -> str:
    """Return the name a handler gives to an RPC.

    >>> attribute_of("LookupPDRoute")
    'lookup_pd_route'
    """
    return _WORD_START.sub("_", method_name).lower()


def rpc_handlers(
    service: ServiceDescriptor,
    handler: object,
    boundary: Boundary,
    unguarded: Collection[str] = (),
    readers: Mapping[str, Reader] | None = None,
) -> dict[str, RpcHandler]:
    """Return a handler per method of *service*.

    Args:
        service: Descriptor of the service.
        handler: Has an attribute per method, see :func:`attribute_of`.
        boundary: Where exceptions and messages that do not parse end.
        unguarded: Methods that never raise and take None for a message that did not parse.
        readers: Methods that take something else than the message, and who makes it of the bytes.

    Raises:
        AttributeError: *handler* lacks a method.
    """
    handlers: dict[str, RpcHandler] = {}
    readers = readers or {}
    bytes_max = boundary.request_bytes_max
    for method in service.methods:
        behaviour = getattr(handler, attribute_of(method.name))
        is_written = method.server_streaming and inspect.iscoroutinefunction(behaviour)
        if method.name not in unguarded:
            behaviour = _guard(method, behaviour, boundary)
        reader = readers.get(method.name) or lenient(GetMessageClass(method.input_type), bytes_max)
        if is_written:
            handlers[method.name] = WrittenStream(behaviour, reader)
        else:
            handlers[method.name] = _MAKERS[method.client_streaming, method.server_streaming](
                behaviour,
                request_deserializer=reader,
                response_serializer=_SERIALIZE,
            )
    return handlers


def _guard(method: MethodDescriptor, behaviour: Behaviour, boundary: Boundary) -> Behaviour:
    if method.server_streaming and not inspect.iscoroutinefunction(behaviour):
        return _guard_stream(method.name, behaviour, boundary)
    if method.client_streaming:
        return _guard_unary(method.name, behaviour, boundary, _hear_out)
    return _guard_unary(method.name, behaviour, boundary, _heard)


def _guard_unary(
    name: str, behaviour: Behaviour, boundary: Boundary, hear_out: Callable[[Any], Awaitable[None]]
) -> Behaviour:
    async def guarded(request: object, context: Context) -> object:
        if request is None:
            await boundary.refuse_unparsable(name, context)
        try:
            return await behaviour(request, context)
        except grpc.aio.AbortError:
            raise
        except grpc.aio.InternalError as over:
            raise_over(over)
        except Exception as error:  # noqa: BLE001 - the gRPC boundary
            await hear_out(request)
            _let_go(error)
            return await boundary.refuse(name, context, error)

    return guarded


def _guard_stream(name: str, behaviour: Behaviour, boundary: Boundary) -> Behaviour:
    async def guarded(request: object, context: Context) -> AsyncIterator[object]:
        if request is None:
            await boundary.refuse_unparsable(name, context)
        try:
            async for message in behaviour(request, context):
                yield message
        except grpc.aio.AbortError:
            raise
        except grpc.aio.InternalError as over:
            raise_over(over)
        except Exception as error:  # noqa: BLE001 - the gRPC boundary
            _let_go(error)
            await boundary.refuse(name, context, error)

    return guarded


def _let_go(error: Exception) -> None:
    """Drop what the code that raised *error* had in its hands, a message of 16 MiB, say.

    A call that was ended from within is part of a cycle with the exceptions that led to that, and
    stays until a garbage collector that looks at everything comes by.
    """
    clear_frames(error.__traceback__)


async def _heard(_request: object) -> None:
    """Do nothing: a single message has arrived when its handler begins."""


async def _hear_out(requests: Any) -> None:  # noqa: ANN401 - messages, or one
    """Take in what a caller is just sending, in vain.

    The library tells a caller that is still sending that its own call broke, and not our status.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WORDS_S):
            async for _ in requests:
                pass


def raise_over(error: grpc.aio.InternalError) -> NoReturn:
    """Leave a call that the library has already ended, over a message beyond its limits, say.

    Nothing can be sent on it any more, and nothing of ours has failed.
    """
    raise asyncio.CancelledError from error


_MAKERS: Final[dict[tuple[bool, bool], Callable[..., RpcHandler]]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
