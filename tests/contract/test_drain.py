"""The end of a server, as callers see it: answered, or UNAVAILABLE, which may be tried again."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import BytesValue
from grpc_health.v1 import health_pb2, health_pb2_grpc
from open_stream import open_stream
from server_process import serving

from inferencecache.settings.grpc import GrpcSettings
from inferencecache.transport.grpc_port import GrpcPort
from inferencecache.transport.rpc_table import WrittenStream
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as rpc

FREE = "127.0.0.1:0"
CALLERS = 30
MESSAGE = BytesValue(value=b"x").SerializeToString()
UPDATE = pb.CacheStateUpdate(
    tenant_id="t", model_id="m", replica_id="a", hash_scheme="s", stats=pb.ReplicaStats()
)
OK, UNAVAILABLE = grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE


async def code_of(call: Any) -> grpc.StatusCode:
    """Return how *call* ends."""
    code: grpc.StatusCode = await call.code()
    return code


class Crowd:
    """Callers that ask one question after the other, each over a connection of its own.

    Attributes:
        codes: How the calls ended.
        asked: Set when every caller has had an answer.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self.codes: Counter[grpc.StatusCode] = Counter()
        self.asked = asyncio.Event()

    async def run(self) -> None:
        """Ask until nobody answers any more."""
        await asyncio.gather(*(self._ask() for _ in range(CALLERS)))

    async def _ask(self) -> None:
        options = (("grpc.use_local_subchannel_pool", 1),)
        async with grpc.aio.insecure_channel(self._target, options) as channel:
            stub = rpc.InferenceCacheStub(channel)
            code = OK
            while code is OK:
                code = await code_of(stub.LookupRoute(pb.LookupRouteRequest()))
                self.codes[code] += 1
                if self.codes[OK] >= 2 * CALLERS:
                    self.asked.set()


@pytest.mark.parametrize("drain", ["0s", "10s"])
async def test_nobody_in_a_crowd_is_cancelled(drain: str) -> None:
    """Every call around the signal is answered or UNAVAILABLE, over thirty busy connections."""
    async with serving(f"--drain-timeout={drain}") as server:
        crowd = Crowd(server.grpc_target)
        asking = asyncio.create_task(crowd.run())
        async with asyncio.timeout(60):
            await crowd.asked.wait()
            assert await server.end(signal.SIGTERM) == 0
            await asking
        assert crowd.codes.keys() == {OK, UNAVAILABLE}
        assert crowd.codes[UNAVAILABLE] == CALLERS


async def test_while_streams_end_short_calls_are_answered() -> None:
    """Health says NOT_SERVING first; lookups go on, new streams are turned away."""
    async with (
        serving("--drain-timeout=60s") as server,
        grpc.aio.insecure_channel(server.grpc_target) as channel,
        asyncio.timeout(60),
    ):
        stub = rpc.InferenceCacheStub(channel)
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        stream = await open_stream(stub, UPDATE)
        assert (await stub.LookupRoute(pb.LookupRouteRequest())).reason_code == "NO_HINT"
        server.process.send_signal(signal.SIGTERM)
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        while await code_of(stub.ReportCacheState(iter([UPDATE]))) is OK:
            pass
        assert await code_of(stub.ReportCacheState(iter([UPDATE]))) is UNAVAILABLE
        assert (await stub.LookupRoute(pb.LookupRouteRequest())).reason_code == "NO_HINT"
        assert (await stub.GetCacheState(pb.GetCacheStateRequest())).summary is not None
        await stream.write(UPDATE)
        await stream.done_writing()
        assert (await stream).accepted
        assert await server.exited() == 0
        watch.cancel()


async def test_a_stream_beyond_the_drain_is_unavailable() -> None:
    """A producer that does not end is cut off, and knows that it may come back."""
    async with (
        serving("--drain-timeout=1s") as server,
        grpc.aio.insecure_channel(server.grpc_target) as channel,
        asyncio.timeout(60),
    ):
        stream = await open_stream(rpc.InferenceCacheStub(channel), UPDATE)
        assert await server.end(signal.SIGTERM) == 0
        assert await code_of(stream) is UNAVAILABLE


class Slow:
    """A service whose calls end when they are told to.

    Attributes:
        began: Set when a call has begun.
        may_end: Ends them.
    """

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()

    async def call(self, request: bytes, _context: object) -> bytes:
        """Answer with the request, when it is time."""
        self.began.set()
        await self.may_end.wait()
        return request

    async def stream(self, request: bytes, _context: object) -> AsyncIterator[bytes]:
        """Answer once at once and once when it is time."""
        yield request
        await self.may_end.wait()
        yield request

    async def written(self, request: BytesValue, context: grpc.aio.ServicerContext) -> BytesValue:
        """Do the same, and return the last answer."""
        await context.write(request.SerializeToString())
        await self.may_end.wait()
        return request


@asynccontextmanager
async def slow_port() -> AsyncIterator[tuple[GrpcPort, Slow, grpc.aio.Channel]]:
    """Serve it; give the port, the service, and a channel to it."""
    slow = Slow()
    handlers = {
        "Call": grpc.unary_unary_rpc_method_handler(slow.call),
        "Stream": grpc.unary_stream_rpc_method_handler(slow.stream),
        "Written": WrittenStream(slow.written, BytesValue.FromString),
    }
    port = GrpcPort(GrpcSettings(bind_address=FREE), {"slow.Slow": handlers})
    address = await port.start()
    async with asyncio.timeout(60), grpc.aio.insecure_channel(str(address)) as channel:
        yield port, slow, channel
        await port.stop(0)


def call(channel: grpc.aio.Channel, body: bytes = b"x") -> Any:
    """Begin a call."""
    return channel.unary_unary("/slow.Slow/Call")(body)


async def test_a_call_in_progress_is_answered() -> None:
    """However slow it is; one that comes too late is turned away."""
    async with slow_port() as (port, slow, channel):
        running = call(channel)
        await slow.began.wait()
        stopping = asyncio.create_task(port.stop(60))
        while await code_of(call_briefly(channel)) is not UNAVAILABLE:
            pass
        slow.may_end.set()
        assert await running == b"x"
        await stopping


def call_briefly(channel: grpc.aio.Channel) -> Any:
    """Begin a call that gives up soon."""
    return channel.unary_unary("/slow.Slow/Call")(b"", timeout=0.2)


@pytest.mark.parametrize("method", ["Stream", "Written"])
async def test_a_stream_of_answers_is_finished(method: str) -> None:
    """What has begun goes on to its end; until then other calls are answered, but no stream is."""
    async with slow_port() as (port, slow, channel):
        running = channel.unary_stream(f"/slow.Slow/{method}")(MESSAGE)
        assert await running.read() == MESSAGE
        stopping = asyncio.create_task(port.stop(60))
        late = channel.unary_stream(f"/slow.Slow/{method}")
        while await first_code(late) is OK:
            pass
        short = call(channel)
        await slow.began.wait()
        slow.may_end.set()
        assert await short == b"x"
        assert await running.read() == MESSAGE
        assert await code_of(running) is OK
        await stopping


async def first_code(begin: Callable[[bytes], Any]) -> grpc.StatusCode:
    """Return OK if a stream brings something, else how it ends."""
    stream = begin(MESSAGE)
    try:
        await stream.read()
    except grpc.aio.AioRpcError as error:
        return error.code()
    stream.cancel()
    return OK


@pytest.mark.parametrize("grace_s", [0.0, 0.05])
async def test_what_does_not_end_in_time_is_unavailable(grace_s: float) -> None:
    """Neither a call nor a stream is cancelled."""
    async with slow_port() as (port, slow, channel):
        running = call(channel)
        stream = channel.unary_stream("/slow.Slow/Stream")(b"x")
        assert await stream.read() == b"x"
        await slow.began.wait()
        await port.stop(grace_s)
        assert await code_of(running) is UNAVAILABLE
        assert await code_of(stream) is UNAVAILABLE
