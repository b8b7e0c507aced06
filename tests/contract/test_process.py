"""The server as a process: signals, exit codes, log."""

import asyncio
import json
import signal
import socket
from pathlib import Path

import aiohttp
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from open_stream import open_stream
from server_process import serving, spawn

from inferencecache import __version__
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as rpc

EVENTS = [
    "startup",
    "controller_auth_disabled",
    "graceful_shutdown_started",
    "graceful_shutdown_done",
]
UPDATE = pb.CacheStateUpdate(
    tenant_id="t1",
    model_id="m1",
    replica_id="a",
    hash_scheme="vllm",
    prefixes=[pb.PrefixEntry(block_hashes=[b"secret-hash"], block_token_counts=[64])],
    stats=pb.ReplicaStats(),
)


async def test_the_start_is_logged_with_the_real_addresses() -> None:
    """Whoever asks for port 0 learns from the log where the server is."""
    async with serving() as server:
        assert server.startup["level"] == "INFO"
        assert server.startup["version"] == __version__
        assert server.startup["grpc_tls"] is False
        assert not server.grpc_target.endswith(":0")
        async with grpc.aio.insecure_channel(server.grpc_target) as channel:
            answer = await rpc.InferenceCacheStub(channel).LookupRoute(pb.LookupRouteRequest())  # type: ignore[misc] # generated
            assert answer.reason_code == "NO_HINT"
        async with aiohttp.ClientSession() as http, http.get(f"{server.http_url}/readyz") as page:
            assert page.status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_an_idle_server_at_once(number: signal.Signals) -> None:
    """Without calls to wait for, the process says goodbye and exits with 0."""
    async with serving() as server:
        assert await server.end(number) == 0
        assert server.events == EVENTS


async def test_an_open_stream_does_not_hold_the_process_beyond_the_drain() -> None:
    """A producer that keeps its stream open is cut off, and the process ends well."""
    async with (
        serving("--drain-timeout=1s") as server,
        grpc.aio.insecure_channel(server.grpc_target) as channel,
    ):
        stream = await open_stream(rpc.InferenceCacheStub(channel), UPDATE)
        async with asyncio.timeout(30):
            assert await server.end(signal.SIGTERM) == 0
        with pytest.raises(grpc.aio.AioRpcError):
            await stream
        assert server.events[-2:] == ["graceful_shutdown_started", "graceful_shutdown_done"]


async def test_a_drain_answers_running_calls_and_refuses_new_work() -> None:
    """Health turns NOT_SERVING and readiness false at once; an open stream may still finish."""
    async with (
        serving("--drain-timeout=60s") as server,
        grpc.aio.insecure_channel(server.grpc_target) as channel,
    ):
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        stream = await open_stream(rpc.InferenceCacheStub(channel), UPDATE)
        server.process.send_signal(signal.SIGTERM)
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        watch.cancel()
        async with aiohttp.ClientSession() as http:
            async with http.get(f"{server.http_url}/readyz") as page:
                assert (page.status, await page.text()) == (503, "not ready\n\n")
            async with http.get(f"{server.http_url}/healthz") as page:
                assert (page.status, await page.text()) == (200, "ok\n")
        await stream.write(UPDATE)
        await stream.done_writing()
        assert (await stream).accepted
        async with asyncio.timeout(30):
            assert await server.exited() == 0


async def test_a_taken_address_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    """The line says which listener, which address and why."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        free = "127.0.0.1:0"
        for listener in ("grpc", "http", "snapshot"):
            addresses = dict.fromkeys(("grpc", "http", "snapshot"), free) | {listener: address}
            server = await spawn(
                *(f"--{name}-bind-address={where}" for name, where in addresses.items()),
                "--insecure-disable-auth",
                directory=str(tmp_path),
            )
            assert await server.exited() == 1
            assert len(server.lines) == 1
            fields = json.loads(server.lines[0])
            assert (fields["msg"], fields["level"]) == ("serve_error", "ERROR")
            assert (fields["listener"], fields["addr"]) == (listener, address)


async def test_the_log_can_be_text_and_holds_no_hashes() -> None:
    """Text form is key=value; nothing a client sent gets into the log."""
    with_text = ("--log-format=TEXT", "--log-level=debug")
    async with serving("--log-level=debug") as server:
        async with grpc.aio.insecure_channel(server.grpc_target) as channel:
            stub = rpc.InferenceCacheStub(channel)
            call = stub.ReportCacheState(iter([UPDATE]))
            assert (await call).accepted
        assert await server.end(signal.SIGTERM) == 0
        assert server.events == EVENTS
        assert "secret" not in "".join(server.lines)
    server = await spawn(
        *with_text,
        "--grpc-bind-address=127.0.0.1:0",
        "--http-bind-address=127.0.0.1:0",
        "--snapshot-bind-address=127.0.0.1:0",
        "--insecure-disable-auth",
        directory="/",
    )
    assert server.process.stderr is not None
    line = (await server.process.stderr.readline()).decode()
    assert " level=INFO msg=startup version=" in line
    assert await server.end(signal.SIGTERM) == 0
