"""The listener itself: every method, health, reflection, keepalive, limits, failures of ours."""

import asyncio

import grpc
import pytest
from freezing_proxy import freezing_proxy
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from scripted_tokenizer import ScriptedTokenizer
from served_plane import (
    MODEL,
    SERVICE_NAME,
    Recorder,
    ServedPlane,
    chain_entry,
    exact_entry,
    keys,
    lookup,
    new_plane,
    serve,
    set_policy,
    update,
)

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.fingerprint import chain
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.index import IndexSettings
from inferencecache.transport.cache_handler import SERVICE
from inferencecache.transport.grpc_port import GrpcPort
from inferencecache.transport.listen import ListenError
from inferencecache.transport.system_clock import SystemClock
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def health_of(served: ServedPlane, service: str = "") -> int:
    """Return the health of *service*."""
    stub = health_pb2_grpc.HealthStub(served.channel)
    return (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status


@pytest.mark.parametrize("method", [method.name for method in SERVICE.methods])
async def test_every_method_of_the_contract_is_served(served: ServedPlane, method: str) -> None:
    """No method is unknown to the server; only the two streams are refused, by our own words."""
    described = SERVICE.methods_by_name[method]
    path = f"/{SERVICE_NAME}/{method}"
    if described.client_streaming:
        await served.channel.stream_unary(path)(iter([b""]))
    elif described.server_streaming:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            assert [message async for message in served.channel.unary_stream(path)(b"")] == []
        assert caught.value.details().startswith(f"{method}: this server")
    else:
        await served.channel.unary_unary(path)(b"")


async def test_health_follows_the_server(served: ServedPlane) -> None:
    """The server and the service are SERVING until told otherwise; other names are unknown."""
    assert [await health_of(served), await health_of(served, SERVICE_NAME)] == [SERVING, SERVING]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await health_of(served, "nothing")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND

    await served.listener.set_serving(is_serving=False)

    assert [await health_of(served), await health_of(served, SERVICE_NAME)] == [NOT_SERVING] * 2
    assert (await served.look_up(chain=keys(2))).reason_code == "NO_HINT"


async def test_health_watchers_learn_of_the_drain(served: ServedPlane) -> None:
    """A balancer that watches sees NOT_SERVING before the port goes."""
    watch = health_pb2_grpc.HealthStub(served.channel).Watch(health_pb2.HealthCheckRequest())
    assert (await watch.read()).status == SERVING

    await served.listener.set_serving(is_serving=False)

    assert (await watch.read()).status == NOT_SERVING
    watch.cancel()


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_lists_what_is_served(served: ServedPlane, version: str) -> None:
    """Tools find the services under either name of the reflection protocol."""
    call = served.channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )(
        iter(
            [
                reflection_pb2.ServerReflectionRequest(list_services=""),
                reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE_NAME),
            ]
        )
    )
    answers = [answer async for answer in call]

    names = {service.name for service in answers[0].list_services_response.service}
    assert {SERVICE_NAME, "grpc.health.v1.Health"} <= names
    assert answers[1].file_descriptor_response.file_descriptor_proto
    assert reflection_pb2_grpc.ServerReflectionStub(served.channel) is not None


async def test_a_crowd_for_one_method_does_not_keep_others_from_being_accepted(
    served: ServedPlane,
) -> None:
    """The last of very many calls, but the only one of its method, is among the first to end."""
    ended: list[str] = []

    async def end(name: str, request: bytes = b"") -> None:
        await served.channel.unary_unary(f"/{SERVICE_NAME}/{name}")(request)
        ended.append(name)

    await end("GetCacheState")
    crowd = [end("LookupRoute") for _ in range(300)]
    await asyncio.gather(*crowd, end("GetCacheState"))
    assert ended.index("GetCacheState", 1) < 150


async def test_two_servers_do_not_share_a_port(served: ServedPlane) -> None:
    """The second one is told that the address is taken."""
    settings = GrpcSettings(bind_address=served.target)
    with pytest.raises(ListenError):
        async with serve(settings=settings):
            pytest.fail("both listen")


async def test_stop_lets_running_calls_end(served: ServedPlane) -> None:
    """An open stream may finish within the grace time."""
    call = served.stub.ReportCacheState()
    await call.write(update("A", exact_entry(b"p", 64)))
    await served.recorder.until(lambda: served.recorder.updates == 1)
    stopping = asyncio.create_task(served.listener.stop(10))
    await asyncio.sleep(0)
    await call.done_writing()

    assert await call == pb.Ack(accepted=True)
    await stopping


async def test_pings_of_an_idle_stream_do_not_end_it() -> None:
    """A producer that pings often and reports rarely keeps its stream.

    Scaled down: the defaults of the library would end the stream at the third ping.
    """
    async with serve() as served:
        options = (
            ("grpc.keepalive_time_ms", 100),
            ("grpc.keepalive_timeout_ms", 5_000),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.http2.min_time_between_pings_ms", 100),
        )
        async with grpc.aio.insecure_channel(served.target, options=options) as channel:
            report = channel.stream_unary(f"/{SERVICE_NAME}/ReportCacheState")
            call = report()
            await call.write(update("A", exact_entry(b"a", 64)).SerializeToString())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(call.code(), 1.5)
            await call.write(update("A", exact_entry(b"b", 64)).SerializeToString())
            await call.done_writing()

            assert pb.Ack.FromString(await call) == pb.Ack(accepted=True)
            assert served.plane.index.entries == 2


async def test_streams_of_a_silent_peer_are_freed() -> None:
    """A peer that answers no ping any more loses its connection, and with it its streams.

    Until then it has two seconds for each answer, however busy the machine is.
    """
    settings = GrpcSettings(
        bind_address="127.0.0.1:0",
        keepalive_time_ns=200 * NS_PER_MS,
        keepalive_timeout_ns=2 * NS_PER_S,
    )
    async with (
        serve(settings=settings) as served,
        freezing_proxy(served.target) as proxy,
        grpc.aio.insecure_channel(proxy.address) as channel,
    ):
        call = channel.stream_unary(f"/{SERVICE_NAME}/ReportCacheState")()
        await call.write(update("A", exact_entry(b"a", 64)).SerializeToString())
        await served.recorder.until(lambda: served.recorder.updates == 1)
        proxy.freeze()
        async with asyncio.timeout(30):
            await proxy.server_closed.wait()
        call.cancel()

    assert served.plane.index.entries == 1


@pytest.mark.parametrize("accepts", [True, False])
async def test_compression_is_used_where_the_client_accepts_it(*, accepts: bool) -> None:
    """A client that knows only the identity encoding gets it."""
    settings = GrpcSettings(bind_address="127.0.0.1:0", compression="gzip")
    async with serve(settings=settings) as served:
        await served.report(*(update(f"r{n}", chain_entry(keys(8))) for n in range(200)))
        options = () if accepts else (("grpc.compression_enabled_algorithms_bitset", 1),)
        async with grpc.aio.insecure_channel(served.target, options=options) as channel:
            call = channel.unary_unary(f"/{SERVICE_NAME}/GetCacheState")(
                pb.GetCacheStateRequest(tenant_id="t1", model_id="m1").SerializeToString()
            )
            answer = pb.GetCacheStateResponse.FromString(await call)

    assert answer.summary.total_prefixes == 8


async def slowest_probe_ns(served: ServedPlane, data: bytes) -> int:
    """Ask three times for a prompt, and return the longest that a probe of the health took."""
    clock = SystemClock()
    slowest_ns = 0
    is_over = False

    async def probe() -> None:
        nonlocal slowest_ns
        while not is_over:
            started_ns = clock.monotonic_ns()
            await health_of(served)
            slowest_ns = max(slowest_ns, clock.monotonic_ns() - started_ns)

    probing = asyncio.create_task(probe())
    for _ in range(3):
        answer = pb.LookupRouteResponse.FromString(await served.send_bytes("LookupRoute", data))
        assert answer.replica_scores[0].matched_tokens == 16_000
    is_over = True
    await probing
    return slowest_ns


async def test_health_answers_while_a_huge_prompt_is_hashed() -> None:
    """A million token ids hold nobody up: no probe of the health takes 250 ms.

    Of a few tries the best counts: what the server does is done in each, and what else the machine
    does only ever adds to one.
    """
    tokens = range(1, 1_000_001)
    plane = new_plane(clock=SystemClock())
    async with serve(plane) as served:
        await served.report(update("A", chain_entry(chain(tokens, 16)[:1_000])))
        data = lookup(token_ids=tokens).SerializeToString()
        slowest_ns = await slowest_probe_ns(served, data)
        for _ in range(9):
            if slowest_ns >= 250_000_000:
                slowest_ns = min(slowest_ns, await slowest_probe_ns(served, data))

    assert slowest_ns < 250_000_000


async def test_timeout_of_a_huge_prompt_is_no_error() -> None:
    """The policy's budget ends the hashing with TIMEOUT and the status OK."""
    plane = new_plane(clock=SystemClock())
    set_policy(plane, lookup_timeout_ms=1)
    async with serve(plane) as served:
        answer = await served.look_up(token_ids=range(1_000_000))

    assert (answer.reason_code, len(answer.replica_scores)) == ("TIMEOUT", 0)


async def test_caller_that_goes_away_counts_as_a_timeout() -> None:
    """A lookup cancelled while it waits is counted once, as TIMEOUT."""
    recorder = Recorder()
    tokenizer = ScriptedTokenizer(None)
    plane = new_plane(recorder=recorder, tokenizer=tokenizer)
    async with serve(plane, recorder=recorder) as served:
        call = served.stub.LookupRoute(lookup(prompt_text="hello"))
        await asyncio.wait_for(tokenizer.waiting.wait(), 30)
        call.cancel()
        await recorder.until(lambda: sum(recorder.lookups.values()) == 1)

    assert recorder.lookups == {(MODEL, "TIMEOUT", False): 1}
    assert recorder.failures == {}


class BrokenIndex:
    """An index with a bug in whatever is called."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"secret hash in {name}")


async def test_failure_inside_a_lookup_is_no_hint(served: ServedPlane) -> None:
    """A bug costs the hint, is counted each time and logged once, without the request's content."""
    served.plane._route._parts.matcher._index = BrokenIndex()

    answers = [await served.look_up(chain=keys(8)) for _ in range(3)]

    assert answers == [pb.LookupRouteResponse(reason_code="NO_HINT")] * 3
    assert served.recorder.failures == {"LookupRoute": 3}
    assert served.recorder.lookups == {(MODEL, "NO_HINT", False): 3}
    ((event, fields),) = served.recorder.lines
    assert (event, fields["method"], fields["error"]) == (
        "grpc_handler_failed",
        "LookupRoute",
        "RuntimeError",
    )
    assert "secret" not in str(fields)


async def test_failures_are_logged_again_after_a_while(served: ServedPlane) -> None:
    """The next line says how many were not logged."""
    served.plane._route._parts.matcher._index = BrokenIndex()
    for _ in range(3):
        await served.look_up(chain=keys(8))
    served.plane.clock.advance_ns(60_000_000_000)
    await served.look_up(chain=keys(8))

    assert [fields["unlogged"] for _, fields in served.recorder.lines] == [0, 2]


async def test_failure_inside_another_call_is_unavailable() -> None:
    """Callers may try again; they learn nothing of our insides."""
    plane = new_plane()
    async with serve(plane) as served:
        plane.index = BrokenIndex()
        for method, request in (
            ("GetCacheState", pb.GetCacheStateRequest()),
            ("PublishEvent", pb.CacheEvent(type=pb.CacheEvent.ALL_CLEARED)),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await getattr(served.stub, method)(request)

            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert caught.value.details() == f"{method}: the server failed; try again"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await served.report(update("A"))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE

    assert served.recorder.failures == {
        "GetCacheState": 1,
        "PublishEvent": 1,
        "ReportCacheState": 1,
    }


async def test_cap_holds_within_one_stream() -> None:
    """A burst of five replicas never leaves more than the cap behind."""
    plane = new_plane(index=IndexSettings(entries_max=10_000))
    async with serve(plane) as served:
        await served.report(
            *(
                update(f"r{number % 5}", chain_entry(keys(500, salt=number)))
                for number in range(100)
            )
        )

    assert plane.index.entries == 10_000
    assert sum(plane.index.counters.evictions.values()) == 40_000


async def test_a_connection_that_says_nothing_is_closed() -> None:
    """Whoever does not begin to speak HTTP/2 does not hold a connection for ever."""
    settings = GrpcSettings(bind_address="127.0.0.1:0", handshake_timeout_ns=50 * NS_PER_MS)
    port = GrpcPort(settings, {})
    address = await port.start()
    try:
        async with asyncio.timeout(30):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            await reader.read()
            writer.close()
    finally:
        await port.stop(0)


async def test_connections_beyond_the_limit_are_closed_at_once() -> None:
    """Those that are there go on."""
    settings = GrpcSettings(bind_address="127.0.0.1:0", connections_max=1)
    port = GrpcPort(settings, {})
    address = await port.start()
    options = (("grpc.use_local_subchannel_pool", 1),)
    try:
        async with asyncio.timeout(30), grpc.aio.insecure_channel(str(address), options) as first:
            ask = health_pb2_grpc.HealthStub(first).Check
            await ask(health_pb2.HealthCheckRequest())
            reader, writer = await asyncio.open_connection(address.host, address.port)
            assert await reader.read() == b""
            writer.close()
            await ask(health_pb2.HealthCheckRequest())
    finally:
        await port.stop(0)
