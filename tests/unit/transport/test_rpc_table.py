"""Handlers made from a descriptor, and what their guards let through."""

import asyncio
from collections.abc import AsyncIterator
from typing import NoReturn

import grpc
import pytest
from served_plane import Recorder

from inferencecache.clock import ManualClock
from inferencecache.errors import InvalidRequestError
from inferencecache.transport.boundary import Boundary, FailureLog
from inferencecache.transport.cache_handler import SERVICE, CacheHandler
from inferencecache.transport.rpc_table import WrittenStream, attribute_of, rpc_handlers
from inferencecache.v1alpha1 import inferencecache_pb2 as pb


class Aborted(grpc.aio.AbortError):
    """How the library ends a call from within."""


class FakeContext:
    """Remembers what was written, and how a call was ended."""

    def __init__(self) -> None:
        self.written: list[object] = []

    async def write(self, message: object) -> None:
        """Send a message."""
        self.written.append(message)

    async def abort(self, code: grpc.StatusCode, details: str = "") -> NoReturn:
        """End the call."""
        self.ended = (code, details)
        raise Aborted


class Handler:
    """One answer for every method; *trouble* is raised instead when set."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self._trouble = trouble

    def __getattr__(self, name: str) -> object:
        return self._stream if name.startswith("stream_") else self._unary

    async def _unary(self, _request: object, _context: object) -> str:
        if self._trouble is not None:
            raise self._trouble
        return "answer"

    async def _stream(self, _request: object, _context: object) -> AsyncIterator[str]:
        yield "first"
        if self._trouble is not None:
            raise self._trouble
        yield "last"


class WritingHandler(Handler):
    """Writes the answers of a stream but the last."""

    async def _stream(self, _request: object, context: FakeContext) -> str:
        await context.write("first")
        if self._trouble is not None:
            raise self._trouble
        return "last"


def handlers_for(handler: object, recorder: Recorder | None = None) -> dict[str, object]:
    """Return the guarded handlers of the service."""
    recorder = recorder or Recorder()
    failures = FailureLog(recorder, recorder, ManualClock(), 0)
    return dict(rpc_handlers(SERVICE, handler, Boundary(recorder, failures)))


async def call(handler: object, context: FakeContext) -> list[object]:
    """Call *handler*, whichever kind of answer it gives."""
    if handler.response_streaming:
        return [message async for message in handler.unary_stream("request", context)]
    return [await handler.unary_unary("request", context)]


@pytest.mark.parametrize("method", [method.name for method in SERVICE.methods])
def test_every_method_of_the_contract_has_a_method(method: str) -> None:
    """The handler class spells out each of them."""
    assert callable(vars(CacheHandler)[attribute_of(method)])


def test_missing_method_stops_the_start() -> None:
    """A method nobody wrote is found when the server is built, not when it is called."""
    with pytest.raises(AttributeError):
        handlers_for(object())


async def test_answers_pass_through() -> None:
    """A guard changes nothing of what goes well."""
    handlers = handlers_for(Handler())
    context = FakeContext()

    assert await call(handlers["GetCacheState"], context) == ["answer"]
    assert await call(handlers["StreamMetrics"], context) == ["first", "last"]


async def test_a_stream_may_return_its_last_answer() -> None:
    """What comes before it is written; a single answer is a single answer as ever."""
    handlers = handlers_for(WritingHandler())
    context = FakeContext()
    assert await call(handlers["GetCacheState"], context) == ["answer"]
    assert await handlers["StreamMetrics"].unary_unary("request", context) == "last"
    assert context.written == ["first"]
    assert not isinstance(handlers["GetCacheState"], WrittenStream)
    assert isinstance(handlers["StreamMetrics"], WrittenStream)


@pytest.mark.parametrize(
    ("trouble", "code", "counted"),
    [
        (
            InvalidRequestError(field="f", value=1, allowed="2"),
            grpc.StatusCode.INVALID_ARGUMENT,
            0,
        ),
        (NotImplementedError("not here"), grpc.StatusCode.UNIMPLEMENTED, 0),
        (RuntimeError("secret"), grpc.StatusCode.UNAVAILABLE, 1),
    ],
)
@pytest.mark.parametrize("method", ["GetCacheState", "StreamMetrics"])
@pytest.mark.parametrize("kind", [Handler, WritingHandler])
async def test_errors_become_statuses(
    trouble: Exception, code: grpc.StatusCode, counted: int, method: str, kind: type[Handler]
) -> None:
    """Errors on purpose are explained, others counted and hidden; streams are no exception."""
    recorder = Recorder()
    handler = handlers_for(kind(trouble), recorder)[method]
    context = FakeContext()
    with pytest.raises(Aborted):
        await call(handler, context)

    assert context.ended[0] is code
    assert "secret" not in context.ended[1]
    assert sum(recorder.failures.values()) == counted


@pytest.mark.parametrize("method", ["GetCacheState", "StreamMetrics"])
async def test_calls_ended_by_their_handler_stay_ended(method: str) -> None:
    """An abort from within is no failure."""
    recorder = Recorder()
    handler = handlers_for(Handler(Aborted()), recorder)[method]
    with pytest.raises(Aborted):
        await call(handler, FakeContext())

    assert recorder.failures == {}


def test_deserialisers_are_lenient() -> None:
    """Each one gives None for bytes that are no message."""
    for handler in handlers_for(Handler()).values():
        assert handler.request_deserializer(b"\xff\xff") is None
        assert handler.response_serializer(pb.Ack(accepted=True)) == b"\x08\x01"


@pytest.mark.parametrize("method", ["PublishEvent", "StreamMetrics"])
async def test_a_call_that_the_library_ended_is_no_failure_of_ours(method: str) -> None:
    """A message beyond the library's limits ends the call under the handler's feet."""
    recorder = Recorder()
    handler = handlers_for(Handler(grpc.aio.InternalError("batch")), recorder)[method]

    with pytest.raises(asyncio.CancelledError):
        await call(handler, FakeContext())

    assert not recorder.failures
