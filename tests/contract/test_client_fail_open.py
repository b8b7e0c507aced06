"""Both clients over a real socket, against servers that fail: a hint is lost, never a request."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from both_clients import DRIVERS, Open, opening
from scripted_cache_server import (
    ScriptedServer,
    abort,
    answer,
    resetting_server,
    scripted_server,
)

from inferencecache.client import (
    ClientSettings,
    FailOpenCause,
    LookupQuery,
    ReasonCode,
)
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

QUERY = LookupQuery(
    tenant_id="t",
    model_id="m",
    hash_scheme="vllm",
    block_hashes=[b"a" * 8, b"b" * 8],
    block_token_counts=[16, 16],
)
PATIENT = 10_000
"""Milliseconds; the answer is there long before."""


@pytest.fixture(params=sorted(DRIVERS))
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """Return what opens a client of either kind; all are closed at the end."""
    async with opening(request.param) as open_client:
        yield open_client


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    """Run a scripted server."""
    async with scripted_server() as running:
        yield running


async def test_passed_deadline_is_a_local_timeout(connect: Open, server: ScriptedServer) -> None:
    """A server that hangs past the deadline gives TIMEOUT, made by the client."""
    server.route = server.hang
    client = connect(server.target)

    result = await client.lookup(QUERY, deadline_ms=30)

    assert (result.reason_code, result.raw_reason_code) == (ReasonCode.TIMEOUT, "")
    assert result.cause is FailOpenCause.DEADLINE


async def test_default_deadline_is_a_setting(connect: Open, server: ScriptedServer) -> None:
    """Without a deadline of its own, a lookup takes the one in the settings."""
    server.route = server.hang
    client = connect(server.target, settings=ClientSettings(lookup_deadline_ns=20_000_000))

    assert (await client.lookup(QUERY)).reason_code is ReasonCode.TIMEOUT


@pytest.mark.parametrize("deadline_ms", [0, -5])
async def test_no_time_means_no_call(
    connect: Open, server: ScriptedServer, deadline_ms: int
) -> None:
    """With no time left the server is not even asked."""
    result = await connect(server.target).lookup(QUERY, deadline_ms=deadline_ms)

    assert result.reason_code is ReasonCode.TIMEOUT
    assert server.lookups == []


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (grpc.StatusCode.UNAVAILABLE, FailOpenCause.UNREACHABLE),
        (grpc.StatusCode.UNAUTHENTICATED, FailOpenCause.REFUSED),
        (grpc.StatusCode.PERMISSION_DENIED, FailOpenCause.REFUSED),
        (grpc.StatusCode.UNIMPLEMENTED, FailOpenCause.UNSUPPORTED),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, FailOpenCause.TOO_LARGE),
        (grpc.StatusCode.INTERNAL, FailOpenCause.RPC_ERROR),
        (grpc.StatusCode.CANCELLED, FailOpenCause.RPC_ERROR),
        (grpc.StatusCode.INVALID_ARGUMENT, FailOpenCause.RPC_ERROR),
    ],
)
async def test_every_status_fails_open(
    connect: Open, server: ScriptedServer, status: grpc.StatusCode, cause: FailOpenCause
) -> None:
    """Whatever status a call ends with, there is a result without a hint, and one line why."""
    server.route = abort(status, "two\nlines")

    result = await connect(server.target).lookup(QUERY, deadline_ms=PATIENT)

    assert (result.reason_code, result.cause) == (ReasonCode.NO_HINT, cause)
    assert result.detail == f"{status.name}: two lines"


async def test_reset_connection_fails_open(connect: Open) -> None:
    """A peer that resets every connection costs a hint."""
    async with resetting_server() as target:
        result = await connect(target).lookup(QUERY, deadline_ms=PATIENT)

    assert result.reason_code is ReasonCode.NO_HINT
    assert result.cause is FailOpenCause.UNREACHABLE


async def test_absent_server_fails_open_and_comes_back(
    connect: Open, server: ScriptedServer
) -> None:
    """Lookups go without a hint while the server is down, and find it again by themselves."""
    settings = ClientSettings(reconnect_initial_ns=10_000_000, reconnect_max_ns=100_000_000)
    client = connect(server.target, settings=settings)
    await client.lookup(QUERY, deadline_ms=PATIENT)
    await server.kill()

    down = await client.lookup(QUERY, deadline_ms=PATIENT)
    again = ScriptedServer()
    again.route = answer("PREFIX_MATCH", "r1")
    await again.start(server.target)
    while not (up := await client.lookup(QUERY, deadline_ms=PATIENT)).has_hint:
        pass
    await again.kill()

    assert down.cause is FailOpenCause.UNREACHABLE
    assert up.best().replica_id == "r1"


async def test_server_killed_in_the_middle_fails_open(
    connect: Open, server: ScriptedServer
) -> None:
    """A server that dies during the call costs a hint."""
    server.route = server.hang
    lookup = asyncio.ensure_future(connect(server.target).lookup(QUERY, deadline_ms=PATIENT))
    await server.entered.wait()

    await server.kill()
    result = await lookup

    assert result.reason_code is ReasonCode.NO_HINT
    assert result.cause in {FailOpenCause.UNREACHABLE, FailOpenCause.RPC_ERROR}


async def test_closing_in_the_middle_fails_open(connect: Open, server: ScriptedServer) -> None:
    """Closing the client ends calls under way without a hint, later ones too."""
    server.route = server.hang
    client = connect(server.target)
    lookup = asyncio.ensure_future(client.lookup(QUERY, deadline_ms=PATIENT))
    await server.entered.wait()

    await client.close()
    during, after = await lookup, await client.lookup(QUERY, deadline_ms=PATIENT)

    assert during.reason_code is ReasonCode.NO_HINT
    assert after.cause is FailOpenCause.CLOSED


@pytest.mark.parametrize(
    "changes",
    [
        {"token_ids": [-1]},
        {"token_ids": [2**32]},
        {"block_token_counts": [2**31]},
        {"tenant_id": "\ud800"},
        {"prefix_hash": "text"},
        {"model_id": None, "token_ids": ["x"]},
    ],
)
async def test_query_outside_the_wire_fails_open(
    connect: Open, server: ScriptedServer, changes: dict[str, object]
) -> None:
    """A value that the wire cannot carry costs the hint, not the request."""
    values: dict[str, object] = {"tenant_id": "t", "model_id": "m", "hash_scheme": "s"}
    query = LookupQuery(**(values | changes))

    result = await connect(server.target).lookup(query, deadline_ms=PATIENT)

    assert result.cause is FailOpenCause.INVALID_QUERY
    assert server.lookups == []


async def test_undecodable_answer_fails_open(connect: Open) -> None:
    """Bytes that are no answer cost the hint, and nothing is logged as an exception."""

    async def garbage(_request: bytes, _context: object) -> bytes:
        return b"\x12\x01\xff"

    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(garbage)
    server.add_generic_rpc_handlers(
        [
            grpc.method_handlers_generic_handler(
                "inferencecache.v1alpha1.InferenceCache", {"LookupRoute": handler}
            )
        ]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()

    result = await connect(f"127.0.0.1:{port}").lookup(QUERY, deadline_ms=PATIENT)
    await server.stop(None)

    assert (result.reason_code, result.cause) == (
        ReasonCode.NO_HINT,
        FailOpenCause.INVALID_ANSWER,
    )


async def test_echo_of_a_long_prompt_fits(connect: Open, server: ScriptedServer) -> None:
    """A million echoed token ids, more than gRPC takes by default, arrive."""
    count = 2**20

    async def route(_request: object, _context: object) -> pb.LookupRouteResponse:
        tokens = [2**32 - 1] * count
        return pb.LookupRouteResponse(reason_code="NO_HINT", token_ids=tokens)

    server.route = route

    result = await connect(server.target).lookup(QUERY, deadline_ms=60_000)

    assert len(result.token_ids) == count


async def test_tls_credentials_are_used(connect: Open, server: ScriptedServer) -> None:
    """Given credentials the client speaks TLS, which a plaintext server cannot answer."""
    client = connect(server.target, credentials=grpc.ssl_channel_credentials())

    result = await client.lookup(QUERY, deadline_ms=PATIENT)

    assert result.cause is FailOpenCause.UNREACHABLE
    assert server.lookups == []


async def test_cancelled_task_stays_cancelled(server: ScriptedServer) -> None:
    """Cancelling the task that looks up is not turned into a result."""
    server.route = server.hang
    client = DRIVERS["awaited"](server.target)
    task = asyncio.ensure_future(client.lookup(QUERY, deadline_ms=PATIENT))
    await server.entered.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await client.close()
