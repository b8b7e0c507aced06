"""Destinations that let requests down: what clients see, what the picker learns, what is tried."""

import asyncio
import json
import ssl
from pathlib import Path

import pytest
from aiohttp import web
from certificates import Authority
from served_gateway import (
    ServedGateway,
    backend,
    serve_gateway,
    serve_upstream,
    tiers,
    vendor,
    worker,
)

from inferencecache.clock import NS_PER_MS, NS_PER_S, ManualClock
from inferencecache.settings.gateway import GatewayPickerSettings, GatewayRequestSettings
from inferencecache.settings.gateway_upstream import GatewayUpstreamSettings
from inferencecache.settings.picker_choice import PickerSuppressionSettings

CHAT_POOL = GatewayPickerSettings(pool="default/chat")
LONG = PickerSuppressionSettings(backoff_min_ns=300 * NS_PER_S)
NOBODY = "127.0.0.1:1"
NOW_NS = 1_700_000_000 * NS_PER_S
VENDOR_FIRST = tiers("InferenceProvider/vendor", "InferenceWorkerSet/w")


def keyed(address: str, extra: str = "") -> str:
    """Return a backend with a key."""
    return backend(f"baseURL: 'http://{address}', auth: {{secretFile: k}}{extra}")


def put_key(directory: Path, key: str) -> None:
    """Write the provider's key."""
    (directory / "secrets").mkdir(exist_ok=True)
    (directory / "secrets" / "k").write_text(key)


def wants(key: str) -> object:
    """Return a handler that refuses every other key."""

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {key}":
            return web.json_response({"error": "who are you"}, status=401)
        return web.json_response({"model": "real-name"})

    return handler


async def states(served: ServedGateway) -> str:
    """Return the state of the provider."""
    return (await served.fleet.states())["vendor"]


async def test_a_worker_that_is_gone_costs_a_second_attempt(tmp_path: Path) -> None:
    """Elsewhere; the first one is told of with status 0, and nothing stays in flight."""
    async with serve_upstream() as upstream:
        documents = (
            worker(NOBODY, "gone"),
            worker(upstream.address, "w"),
            tiers("InferenceWorkerSet/gone", "InferenceWorkerSet/w"),
        )
        async with serve_gateway(tmp_path, *documents, picker=CHAT_POOL) as served:
            assert (await served.chat()).status == 200
            await served.settled()
            page = await served.metrics()
            assert 'retries_total{failure="unreachable"} 1.0' in page
            assert 'upstream_answers_total{destination="worker",status="0"} 1.0' in page
            assert served.reported("ReportFirstToken") == 2
            assert served.reported("Abort") == served.reported("ReportFinalToken") == 1


async def hangs_up(request: web.BaseRequest) -> web.StreamResponse:
    """Die while a request is there."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@pytest.mark.parametrize("is_gone", [True, False])
async def test_no_client_notices_one_destination_that_dies(
    tmp_path: Path, *, is_gone: bool
) -> None:
    """With the default of two attempts, also before it is left alone, and if it dies at work."""
    async with serve_upstream(hangs_up) as dying, serve_upstream() as upstream:
        documents = (
            worker(NOBODY if is_gone else dying.address, "dying"),
            worker(upstream.address, "w"),
            tiers("InferenceWorkerSet/dying", "InferenceWorkerSet/w"),
        )
        async with serve_gateway(
            tmp_path, *documents, picker=CHAT_POOL, server_picker_suppression=LONG
        ) as served:
            assert [(await served.chat()).status for _ in range(5)] == [200] * 5
            await served.settled()
            page = await served.metrics()
            assert 'retries_total{failure="unreachable"} 3.0' in page
            assert len(upstream.requests) == 5


@pytest.mark.parametrize("given", ["r1", ""])
async def test_all_attempts_of_a_request_have_one_name(tmp_path: Path, given: str) -> None:
    """The client's, or else one that is made up; by it the next one is led elsewhere."""
    requests = GatewayRequestSettings(shows_decision=True)
    async with serve_upstream() as upstream:
        documents = (
            worker(NOBODY, "gone"),
            worker(upstream.address, "w"),
            tiers("InferenceWorkerSet/gone", "InferenceWorkerSet/w"),
        )
        async with serve_gateway(
            tmp_path, *documents, picker=CHAT_POOL, requests=requests
        ) as served:
            headers = {"X-Request-Id": given} if given else {}
            first = await served.chat(headers=headers)
            await served.settled()
            second = await served.chat(headers=headers)
            names = [answer.headers["X-Request-Id"] for answer in (first, second)]
            picks = served.fleet.server.picker.records.find("", 10)[::-1]
            assert [pick.request_id for pick in picks] == [name for name in names for _ in "12"]
            assert [pick.destination for pick in picks] == [NOBODY, upstream.address] * 2
            assert len({*names, given} - {""}) == (1 if given else 2)
            assert "avoided=1" in first.headers["X-Inference-Reason"]
            assert picks[0].reason.count("avoided") == 0


@pytest.mark.parametrize("kept_bytes", [0, 10])
async def test_a_body_that_is_gone_is_not_sent_again(tmp_path: Path, kept_bytes: int) -> None:
    """The client is told that nobody answers, and may send it again itself."""
    requests = GatewayRequestSettings(replay_bytes_max=kept_bytes)
    async with serve_gateway(tmp_path, worker(NOBODY), requests=requests) as served:
        answer = await served.chat()
        assert answer.status == 502
        assert json.loads(answer.body)["error"]["code"] == "upstream_unreachable"
        await served.settled()
        assert served.reported("ReportFirstToken") == served.reported("Abort") == 1
        assert "retries_total{" not in await served.metrics()


@pytest.mark.parametrize(
    ("attempts", "statuses"), [(1, [502, 502, 200]), (2, [200, 200, 200]), (3, [200, 200, 200])]
)
async def test_a_wrong_key_suppresses_a_provider_until_it_is_right(
    tmp_path: Path, attempts: int, statuses: list[int]
) -> None:
    """Out after two requests to it; without a second attempt these are 502 and not 401.

    It is back without a restart.
    """
    put_key(tmp_path, "first-key")
    clock = ManualClock(NOW_NS)
    upstream = GatewayUpstreamSettings(attempts_max=attempts)
    async with serve_upstream(wants("right")) as paid, serve_upstream() as local:
        documents = (vendor(), worker(local.address), VENDOR_FIRST, keyed(paid.address))
        async with serve_gateway(
            tmp_path,
            *documents,
            picker=CHAT_POOL,
            upstream=upstream,
            server_picker_suppression=LONG,
            server_clock=clock,
        ) as served:
            assert [(await served.chat()).status for _ in range(3)] == statuses
            await served.settled()
            assert len(paid.requests) == 2
            assert await states(served) == "Accepted,BackendUnauthorized,Suppressed"
            put_key(tmp_path, "right\n")
            clock.advance_ns(2 * LONG.backoff_min_ns)
            assert (await served.chat()).status == 200
            await served.settled()
            assert await states(served) == "Accepted"
            assert [headers["authorization"] for _, headers, _ in paid.requests] == [
                "Bearer first-key",
                "Bearer first-key",
                "Bearer right",
            ]
            assert "first-key" not in repr(served.log.events)


@pytest.mark.parametrize("what", ["object", "secrets", "key", "empty"])
async def test_a_backend_that_cannot_be_resolved(tmp_path: Path, what: str) -> None:
    """Nothing is sent; the provider is out after two requests, and back once it can be resolved."""
    clock = ManualClock(NOW_NS)
    async with serve_upstream() as paid, serve_upstream() as local:
        documents = [vendor(), worker(local.address), VENDOR_FIRST]
        if what != "object":
            documents.append(keyed(paid.address))
        if what == "empty":
            put_key(tmp_path, "\n")
        async with serve_gateway(
            tmp_path,
            *documents,
            picker=CHAT_POOL,
            server_picker_suppression=LONG,
            server_clock=clock,
        ) as served:
            assert [(await served.chat()).status for _ in range(3)] == [200] * 3
            await served.settled()
            assert await states(served) == "Accepted,BackendUnresolved,Suppressed"
            assert paid.requests == []
            put_key(tmp_path, "key")
            if what == "object":
                await served.fleet.put(*documents, keyed(paid.address))
                await served.gateway.resources.look()
            clock.advance_ns(2 * LONG.backoff_min_ns)
            assert (await served.chat()).status == 200
            await served.settled()
            assert await states(served) == "Accepted"
            assert paid.requests[0][1]["authorization"] == "Bearer key"


@pytest.mark.parametrize("status", [400, 404, 422, 429, 500, 503])
async def test_errors_of_destinations_are_passed_on(tmp_path: Path, status: int) -> None:
    """As they are; the picker learns the status, and that there is nothing more to come."""

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"why": "x"}, status=status, headers={"Retry-After": "7"})

    async with (
        serve_upstream(handler) as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        answer = await served.chat()
        assert (answer.status, answer.body) == (status, b'{"why": "x"}')
        assert answer.headers["Retry-After"] == "7"
        await served.settled()
        assert served.reported("ReportFirstToken") == served.reported("Abort") == 1
        assert served.reported("ReportFinalToken") == 0


@pytest.mark.parametrize("status", [301, 304, 307])
async def test_redirects_are_not_followed(tmp_path: Path, status: int) -> None:
    """Nor shown: they would lead clients past the gateway."""

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": "http://10.0.0.1/"})

    async with (
        serve_upstream(handler) as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        answer = await served.chat()
        assert answer.status == 502
        assert "Location" not in answer.headers
        await served.settled()
        assert len(upstream.requests) == 1


async def test_an_answer_that_does_not_come_in_time(tmp_path: Path) -> None:
    """504, and no second attempt: it may still be worked on."""

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    settings = GatewayUpstreamSettings(first_byte_timeout_ns=500 * NS_PER_MS)
    async with (
        serve_upstream(handler) as upstream,
        serve_gateway(tmp_path, worker(upstream.address), upstream=settings) as served,
    ):
        answer = await served.chat()
        assert answer.status == 504
        await served.settled()
        assert len(upstream.requests) == 1
        assert served.reported("ReportFirstToken") == served.reported("Abort") == 1


def _server_context(cert_file: Path, key_file: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert_file, key_file)
    return context


async def test_providers_are_checked_by_their_certificates(tmp_path: Path) -> None:
    """By the authority and the name that the backend gives; never not at all."""
    authority, other = Authority(), Authority("another")
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    authority.write(secrets / "ca.pem")
    other.write(secrets / "other.pem")
    cert_file, key_file = authority.server().write(tmp_path)
    context = _server_context(cert_file, key_file)
    async with serve_upstream(tls=context) as paid:
        url = f"baseURL: 'https://localhost:{paid.port}'"
        for number, (spec, status) in enumerate(
            [
                (f"{url}, tls: {{caFile: ca.pem}}", 200),
                (f"{url}, tls: {{caFile: other.pem}}", 502),
                (f"{url}", 502),
                (f"{url}, tls: {{caFile: ca.pem, serverName: elsewhere.example}}", 502),
                (f"{url.replace('localhost', '127.0.0.1')}, tls: {{caFile: ca.pem}}", 200),
            ]
        ):
            place = tmp_path / str(number)
            place.mkdir()
            (place / "secrets").symlink_to(secrets)
            async with serve_gateway(place, vendor(), backend(spec)) as served:
                answer = await served.chat()
                assert answer.status == status, spec
                await served.settled()


async def test_a_provider_may_want_a_certificate(tmp_path: Path) -> None:
    """Which the backend names."""
    authority = Authority()
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    authority.write(secrets / "ca.pem")
    authority.client("gateway").write(secrets, "client")
    context = _server_context(*authority.server().write(tmp_path))
    context.load_verify_locations(cadata=authority.pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    async with serve_upstream(tls=context) as paid:
        tls = "tls: {caFile: ca.pem, certFile: client.pem, keyFile: client.key}"
        spec = f"baseURL: 'https://localhost:{paid.port}', {tls}"
        async with serve_gateway(tmp_path, vendor(), backend(spec)) as served:
            assert (await served.chat()).status == 200


@pytest.mark.parametrize(("kept_bytes", "status"), [(1_000, 200), (0, 503)])
async def test_a_picker_that_has_forgotten_is_asked_anew(
    tmp_path: Path, kept_bytes: int, status: int
) -> None:
    """From the beginning, if the body is still there."""
    requests = GatewayRequestSettings(replay_bytes_max=kept_bytes)
    async with (
        serve_upstream() as upstream,
        serve_gateway(tmp_path, worker(upstream.address), requests=requests) as served,
    ):
        plane = served.fleet.server.picker.plane
        begin, forgotten = plane.begin, []

        def forget_first(stream_id: int) -> object:
            if not forgotten:
                forgotten.append(stream_id)
                plane.bodies.expire(2**62)
            return begin(stream_id)

        plane.begin = forget_first  # type: ignore[method-assign] # as if much time had passed
        assert (await served.chat()).status == status
        assert len(forgotten) == 1
        await served.settled()
        page = await served.metrics()
        assert 'picker_failures_total{method="Pick",status="NOT_FOUND"} 1.0' in page
