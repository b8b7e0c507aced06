"""A picker whose answers do not parse, or say what only later versions know: none to speak of."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import aiohttp
import grpc
import grpc.aio
import pytest
from served_gateway import CHAT, LOCAL, USAGE, Upstream, gateway_alone, serve_upstream

from inferencecache.app.gateway import Gateway
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.settings.gateway import GatewayPickerSettings

BODY = b'{"model": "m", "messages": []}'
NO_MESSAGE = b"\xff"
LATER_OUTCOME = 99


def answers(upstream: Upstream) -> dict[str, bytes]:
    """Return what a picker answers whose choice is *upstream*, by method."""
    picked = pb.PickResponse(
        outcome=pb.PickResponse.OK,
        local=pb.LocalTarget(endpoint=upstream.address),
        response_id=2,
        body_total_bytes=len(BODY),
    )
    messages = {
        "PushBody": pb.PushBodyResponse(stream_id=1),
        "Pick": picked,
        "PullBody": pb.BodyChunk(chunk=BODY),
        "ReportFirstToken": pb.ReportFirstTokenResponse(acknowledged=True),
        "ReportFinalToken": pb.ReportFinalTokenResponse(acknowledged=True),
        "Abort": pb.AbortResponse(released=True),
    }
    return {method: message.SerializeToString() for method, message in messages.items()}


@asynccontextmanager
async def picking(said: dict[str, bytes]) -> AsyncIterator[str]:
    """Run a picker that answers each method with its bytes; gives the address."""

    def unary(method: str) -> grpc.RpcMethodHandler:
        async def answer(_request: bytes, _context: object) -> bytes:
            return said[method]

        return grpc.unary_unary_rpc_method_handler(answer)

    async def push(chunks: AsyncIterator[bytes], _context: object) -> bytes:
        async for _ in chunks:
            pass
        return said["PushBody"]

    async def pull(_request: bytes, _context: object) -> AsyncIterator[bytes]:
        yield said["PullBody"]

    handlers = {method: unary(method) for method in said}
    handlers["PushBody"] = grpc.stream_unary_rpc_method_handler(push)
    handlers["PullBody"] = grpc.unary_stream_rpc_method_handler(pull)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("kinference.v1.Picker", handlers)]
    )
    port = server.add_insecure_port(LOCAL)
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def gateway_before(
    target: str, fallback: Upstream
) -> AbstractAsyncContextManager[tuple[Gateway, aiohttp.ClientSession]]:
    """Run a gateway whose picker is at *target*, with a client of it."""
    return gateway_alone(GatewayPickerSettings(target=target), fallback)


@pytest.mark.parametrize("method", ["PushBody", "Pick"])
async def test_without_a_choice_that_parses_requests_go_to_the_fallback(method: str) -> None:
    """As where there is no picker."""
    async with serve_upstream() as upstream, serve_upstream() as fallback:
        said = answers(upstream) | {method: NO_MESSAGE}
        async with (
            picking(said) as target,
            gateway_before(target, fallback) as (gateway, client),
            client.post(gateway.url + CHAT, data=BODY) as response,
        ):
            assert (response.status, (await response.json())["usage"]) == (200, USAGE)
        assert [path for path, _, _ in fallback.requests] == ["/else" + CHAT]
        assert upstream.requests == []


async def test_a_body_that_does_not_parse_is_none() -> None:
    """The destination gets no part of it, and the client hears that nobody can be chosen."""
    async with serve_upstream() as upstream, serve_upstream() as fallback:
        said = answers(upstream) | {"PullBody": NO_MESSAGE}
        async with (
            picking(said) as target,
            gateway_before(target, fallback) as (gateway, client),
            client.post(gateway.url + CHAT, data=BODY) as response,
        ):
            assert response.status == 503
            assert (await response.json())["error"]["code"] == "router_unavailable"
        assert upstream.requests == fallback.requests == []


@pytest.mark.parametrize("method", ["ReportFirstToken", "ReportFinalToken"])
async def test_a_report_whose_answer_does_not_parse_has_failed(method: str) -> None:
    """The request itself is answered, and the failure counted."""
    async with serve_upstream() as upstream:
        said = answers(upstream) | {method: NO_MESSAGE}
        async with picking(said) as target, gateway_before(target, upstream) as (gateway, client):
            async with client.post(gateway.url + CHAT, data=BODY) as response:
                assert (response.status, (await response.json())["usage"]) == (200, USAGE)
            async with asyncio.timeout(30):
                while gateway.metrics.pending_reports():
                    await asyncio.sleep(0)
        counts = next(
            family.numbers
            for family in gateway.metrics.families()
            if family.spec.name.endswith("reports_total")
        )
    assert counts[method, "failed"] == 1


async def test_an_outcome_of_a_later_version_is_no_destination() -> None:
    """Whatever it means, nobody was named."""
    async with serve_upstream() as upstream, serve_upstream() as fallback:
        later = pb.PickResponse(outcome=LATER_OUTCOME, reason="later=yes")
        said = answers(upstream) | {"Pick": later.SerializeToString()}
        async with (
            picking(said) as target,
            gateway_before(target, fallback) as (gateway, client),
            client.post(gateway.url + CHAT, data=BODY) as response,
        ):
            assert response.status == 503
            assert (await response.json())["error"]["code"] == "no_destination"
