"""Time limits, abandoned requests, the end of the server, many requests at once (lists F, G, I)."""

import asyncio
from random import Random

import grpc
import pytest
from served_picker import PROMPT, SMALL, ServedPicker, refused, serve_picker, until

from inferencecache.app.server import running_server
from inferencecache.clock import ManualClock
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.kinference.v1 import picker_pb2_grpc as pb_grpc
from inferencecache.settings.picker import PickerSettings
from inferencecache.settings.throwaway import throwaway_server_settings


def is_empty(served: ServedPicker) -> bool:
    """Return whether every gauge is 0."""
    plane = served.picker.plane
    counts = (len(plane.bodies), plane.bodies.buffered_bytes, len(plane.decisions))
    return (*counts, plane.decisions.in_flight.total) == (0, 0, 0, 0)


async def test_time_ends_what_nobody_asks_for() -> None:
    """F78, F79: bodies never picked and decisions never reported about, without any call."""
    clock = ManualClock(1)
    async with serve_picker(clock=clock) as served:
        await served.push(PROMPT)
        await served.push_and_pick()
        assert not is_empty(served)
        clock.advance_ns(SMALL.decision_ttl_ns)
        await until(lambda: is_empty(served))


@pytest.mark.parametrize("seed", range(3))
async def test_requests_abandoned_anywhere_leave_nothing(seed: int) -> None:
    """F80: at any point, with or without an Abort, many at once."""
    clock, random = ManualClock(1), Random(seed)
    async with serve_picker(clock=clock) as served:
        await asyncio.gather(*(abandon(served, random.randrange(7)) for _ in range(300)))

        def is_over() -> bool:
            clock.advance_ns(SMALL.decision_ttl_ns)
            return is_empty(served)

        await until(is_over)
        assert not served.recorder.failures


async def abandon(served: ServedPicker, point: int) -> None:
    """Begin a request and stop at *point*."""
    if point == 0:
        call = served.stub.PushBody()
        await call.write(pb.BodyChunk(chunk=PROMPT))
        call.cancel()
        return
    pushed = await served.push(PROMPT)
    if point == 1:
        return
    picked = await served.pick(pushed.stream_id)
    if point == 2:
        return
    if point == 3:
        pull = served.stub.PullBody(pb.PullBodyRequest(response_id=picked.response_id))
        await pull.read()
        pull.cancel()
        return
    if point == 4:
        await served.abort(picked.response_id)
        return
    await served.pull(picked.response_id)
    await served.first(picked.response_id)
    if point == 6:
        await served.final(picked.response_id)


async def test_a_draining_server_finishes_what_it_has() -> None:
    """F84: no new bodies, but the ones that are there are picked, pulled and reported about."""
    async with serve_picker(clock=ManualClock(1)) as served:
        pushed = await served.push(PROMPT)
        running = served.stub.PushBody()
        await running.write(pb.BodyChunk(chunk=PROMPT))
        await until(lambda: len(served.picker.plane.bodies) == 2)
        drained = asyncio.create_task(served.picker.drain(limit_s=30))
        await until(lambda: served.picker.plane.bodies.is_draining)
        async with refused(grpc.StatusCode.UNAVAILABLE):
            await served.push(PROMPT)
        await running.done_writing()
        for stream_id in (pushed.stream_id, (await running).stream_id):
            picked = await served.pick(stream_id)
            assert await served.pull(picked.response_id) == PROMPT
            assert await served.first(picked.response_id)
        await drained


async def test_many_requests_share_a_connection(served: ServedPicker) -> None:
    """I91: in any order, each gets its own body back."""
    random = Random(7)
    pushes = [(number, b'{"model":"m","prompt":"%d"}' % number) for number in range(1_000)]
    random.shuffle(pushes)
    limit = asyncio.Semaphore(100)

    async def whole(number: int, body: bytes) -> bool:
        async with limit:
            picked = await served.push_and_pick(body, client_request_id=str(number % 10))
            return await served.pull(picked.response_id) == body

    assert all(await asyncio.gather(*(whole(number, body) for number, body in pushes)))


async def test_health_names_the_service(served: ServedPicker) -> None:
    """I95: SERVING while it serves, NOT_SERVING from the beginning of the drain."""
    check = served.channel.unary_unary("/grpc.health.v1.Health/Check")
    name = b"kinference.v1.Picker"
    asked = b"\x0a" + bytes([len(name)]) + name
    assert await check(asked) == b"\x08\x01"
    await served.picker.drain(limit_s=0)
    assert await check(asked) == b"\x08\x02"


@pytest.mark.parametrize("own_port", [False, True])
async def test_the_server_serves_it_on_either_port(*, own_port: bool) -> None:
    """Beside the cache plane, or on a port of its own and then only there."""
    settings = PickerSettings(
        bind_address="127.0.0.1:0" if own_port else "", endpoints="m=10.0.0.1:8000"
    )
    async with running_server(throwaway_server_settings(picker=settings)) as server:
        address = server.addresses.picker
        assert (address is not None) == own_port
        target = str(address) if own_port else server.grpc_target
        async with grpc.aio.insecure_channel(target) as channel:
            stub = pb_grpc.PickerStub(channel)
            pushed = await stub.PushBody(iter([pb.BodyChunk(chunk=PROMPT)]))
            picked = await stub.Pick(pb.PickRequest(body_stream_id=pushed.stream_id))
            assert picked.local.endpoint == "10.0.0.1:8000"
        if own_port:
            plane = grpc.aio.insecure_channel(server.grpc_target)
            async with plane, refused(grpc.StatusCode.UNIMPLEMENTED):
                await pb_grpc.PickerStub(plane).Pick(pb.PickRequest())
        page = (await server.metrics.render()).decode()
    assert (
        'inferencecache_picker_pick_total{outcome="OK",qos="INTERACTIVE",tier="fixed"} 1.0' in page
    )
    assert 'inferencecache_picker_inflight{endpoint="10.0.0.1:8000"} 1.0' in page
