"""Health is told to everybody, whatever some of those who ask do."""

import asyncio
import logging
import signal

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from raw_http2 import RawClient, RawStream, framed, raw_client
from served_plane import SERVICE_NAME, ServedPlane
from server_process import serving

from inferencecache.transport.grpc_health import HealthBoard

SERVICE = "grpc.health.v1.Health"
HEALTH = f"/{SERVICE}"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
ASK = health_pb2.HealthCheckRequest
STATUS = health_pb2.HealthCheckResponse
INVALID = "3"
NO_MESSAGE = b"\xff"
TOO_LONG = ASK(service="x" * 100_000).SerializeToString()


async def watched_unread(client: RawClient, service: str = "") -> RawStream:
    """Watch *service* and let the server send nothing of what it says."""
    stream = await client.open(f"{HEALTH}/Watch")
    await client.send(stream, framed(ASK(service=service).SerializeToString()), end=True)
    await client.until(lambda: ":status" in stream.headers)
    return stream


async def ask(client: RawClient, path: str, message: bytes) -> RawStream:
    """Return the whole answer to *message*."""
    stream = await client.open(path)
    await client.send(stream, framed(message), end=True)
    return await client.answer(stream)


@pytest.mark.parametrize("service", ["", SERVICE_NAME])
async def test_nobody_waits_for_a_watcher_that_does_not_read(
    served: ServedPlane, service: str
) -> None:
    """What it is not told is told to the others, and it learns the latest when it reads again."""
    stub = health_pb2_grpc.HealthStub(served.channel)
    async with raw_client(served.target, window=0) as client, asyncio.timeout(30):
        unread = await watched_unread(client, service)
        watch = stub.Watch(ASK(service=service))
        assert (await watch.read()).status == STATUS.SERVING

        for is_serving in (False, True, False):
            await served.listener.set_serving(is_serving=is_serving)
        assert (await watch.read()).status == STATUS.NOT_SERVING
        assert (await stub.Check(ASK(service=service))).status == STATUS.NOT_SERVING

        assert unread.data == b""
        for status in (STATUS.SERVING, STATUS.NOT_SERVING):
            told = framed(STATUS(status=status).SerializeToString())
            del unread.data[:]
            await client.widen(unread, len(told))
            await client.until(lambda wanted=told: unread.data == wanted)
        watch.cancel()


async def test_who_ends_connections_can_wait_until_watchers_have_been_told() -> None:
    """Until the last has taken what it was to be told, or is gone; not longer than it likes."""
    board, server = HealthBoard(), grpc.aio.server()
    board.show("", is_serving=True)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, board.handlers()),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with raw_client(f"127.0.0.1:{port}", window=0) as client, asyncio.timeout(30):
        await board.told(30)
        unread = await watched_unread(client)
        await board.told(0)
        waiting = asyncio.create_task(board.told(30))
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done

        await client.widen(
            unread, 2 * len(framed(STATUS(status=STATUS.SERVING).SerializeToString()))
        )
        await waiting
        board.show("", is_serving=False)
        await board.told(30)
        board.show("", is_serving=True)
        waiting = asyncio.create_task(board.told(3_600))
    async with asyncio.timeout(30):
        await waiting
    await server.stop(None)


async def test_a_watcher_that_does_not_read_keeps_no_server() -> None:
    """A signal is followed to its end, in time."""
    async with (
        serving("--drain-timeout=1s") as server,
        raw_client(server.grpc_target, window=0) as client,
        asyncio.timeout(60),
    ):
        await watched_unread(client)
        assert await server.end(signal.SIGTERM) == 0


async def test_watchers_of_a_name_that_nothing_has_wait_for_it(served: ServedPlane) -> None:
    """As the protocol of health says; only Check ends."""
    watch = health_pb2_grpc.HealthStub(served.channel).Watch(ASK(service="nothing"))
    assert (await watch.read()).status == STATUS.SERVICE_UNKNOWN
    watch.cancel()


async def test_all_can_be_listed(served: ServedPlane) -> None:
    """The server, and each of its services."""
    await served.listener.withhold(SERVICE_NAME, is_withheld=True)
    listed = await health_pb2_grpc.HealthStub(served.channel).List(health_pb2.HealthListRequest())
    statuses = {name: each.status for name, each in listed.statuses.items()}
    assert statuses == {"": STATUS.SERVING, SERVICE_NAME: STATUS.NOT_SERVING}


@pytest.mark.parametrize("message", [NO_MESSAGE, TOO_LONG], ids=["no message", "too long"])
@pytest.mark.parametrize("method", ["Check", "Watch", "List"])
async def test_what_is_no_message_is_refused_without_a_line(
    served: ServedPlane, caplog: pytest.LogCaptureFixture, method: str, message: bytes
) -> None:
    """Whoever reaches the port could fill the log with them."""
    with caplog.at_level(logging.WARNING):
        async with raw_client(served.target) as client:
            answer = await ask(client, f"{HEALTH}/{method}", message)

    assert answer.status == INVALID
    assert answer.headers["grpc-message"] == f"{method}: the request is not a valid message"
    assert caplog.records == []


async def test_reflection_answers_what_is_no_message_without_a_line(
    served: ServedPlane, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so in a message of its own, as of anything that it does not have."""
    with caplog.at_level(logging.WARNING):
        async with raw_client(served.target) as client:
            answer = await ask(client, REFLECTION, NO_MESSAGE)

    said = reflection_pb2.ServerReflectionResponse.FromString(bytes(answer.data[5:]))
    assert said.error_response.error_code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert answer.status == "0"
    assert caplog.records == []
