"""No picker, one that ends, or one that says nothing: requests fail at once, or go elsewhere."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from certificates import Authority
from served_gateway import (
    CHAT,
    USAGE,
    Upstream,
    gateway_alone,
    serve_gateway,
    serve_upstream,
    worker,
)

from inferencecache.app.gateway import Gateway
from inferencecache.clock import NS_PER_MS
from inferencecache.errors import ConfigError
from inferencecache.settings.gateway import (
    GatewayPickerSettings,
    GatewayRequestSettings,
    GatewaySettings,
)
from inferencecache.settings.gateway_listen import (
    GatewayTlsSettings,
)
from inferencecache.settings.gateway_upstream import GatewayUpstreamSettings
from inferencecache.transport.start_error import StartError

BODY = b'{"model": "m", "messages": []}'


def alone(
    target: str, fallback: Upstream | None = None, **requests: int
) -> AbstractAsyncContextManager[tuple[Gateway, aiohttp.ClientSession]]:
    """Run a gateway that does not wait for a picker at *target*, with a client of it."""
    picker = GatewayPickerSettings(
        target=target, connect_timeout_ns=100 * NS_PER_MS, pick_timeout_ns=200 * NS_PER_MS
    )
    return gateway_alone(picker, fallback, **requests)


@asynccontextmanager
async def mute() -> AsyncIterator[str]:
    """Listen for connections, and say nothing to anybody."""
    held = []
    server = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        for writer in held:
            writer.close()
        server.close()
        await server.wait_closed()


async def test_without_a_picker_clients_are_told_at_once() -> None:
    """503, and after how long it is worth another try."""
    async with alone("127.0.0.1:1") as (gateway, client):
        async with client.post(gateway.url + CHAT, data=BODY) as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "1")
            assert (await response.json())["error"]["code"] == "router_unavailable"
        async with client.get(gateway.page_url + "/readyz") as response:
            assert response.status == 503
        async with client.get(gateway.page_url + "/healthz") as response:
            assert response.status == 200


async def test_a_picker_that_says_nothing_is_none() -> None:
    """After the time that a choice may take."""
    async with (
        mute() as target,
        alone(target) as (gateway, client),
        client.post(gateway.url + CHAT, data=BODY) as response,
    ):
        assert response.status == 503


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("size", [1, 500_000])
async def test_without_a_picker_requests_go_to_the_fallback(is_chunked: object, size: int) -> None:
    """As they are, to the path that the client has named, and so does the answer."""
    body = b'{"model": "m", "prompt": "' + b"x" * size + b'"}'

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 50_000):
            yield body[start : start + 50_000]

    async with serve_upstream() as upstream, alone("127.0.0.1:1", upstream) as (gateway, client):
        data = pieces() if is_chunked else io.BytesIO(body)
        async with client.post(gateway.url + "/v1/completions?a=b", data=data) as response:
            assert (response.status, (await response.json())["usage"]) == (200, USAGE)
        ((path, headers, arrived),) = upstream.requests
        assert (path, arrived) == ("/else/v1/completions?a=b", body)
        assert "authorization" not in headers


async def test_a_body_that_is_gone_cannot_fall_back() -> None:
    """Part of it went to a picker that has ended since."""
    async with (
        serve_upstream() as upstream,
        alone("127.0.0.1:1", upstream, replay_bytes_max=10) as (gateway, client),
        client.post(gateway.url + CHAT, data=BODY) as response,
    ):
        assert response.status == 503
        assert upstream.requests == []


async def test_a_fallback_that_is_not_there() -> None:
    """502, as for any destination."""
    nobody = Upstream(address="127.0.0.1:1")
    async with (
        alone("127.0.0.1:1", nobody) as (gateway, client),
        client.post(gateway.url + CHAT, data=BODY) as response,
    ):
        assert response.status == 502


async def test_a_fallback_that_leads_elsewhere() -> None:
    """502, as for any destination: nobody follows a redirect, and the client cannot."""

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"})

    async with (
        serve_upstream(handler) as upstream,
        alone("127.0.0.1:1", upstream) as (gateway, client),
        client.post(gateway.url + CHAT, data=BODY, allow_redirects=False) as response,
    ):
        assert response.status == 502
        assert (await response.json())["error"]["code"] == "upstream_answer"


async def test_a_picker_that_comes_back_is_asked_again(tmp_path: Path) -> None:
    """Without a restart; answers that had begun go on without it."""
    let_go = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        out = web.StreamResponse()
        await out.prepare(request)
        await out.write(b"a")
        await let_go.wait()
        await out.write(b"b")
        return out

    async with (
        serve_upstream(handler) as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        async with served.client.post(served.url, data=BODY) as response:
            assert await response.content.readexactly(1) == b"a"
            await served.fleet.server.stop(drain_ns=0)
            assert (await served.chat()).status == 503
            let_go.set()
            assert await response.read() == b"b"
        async with asyncio.timeout(30):
            while served.gateway.metrics.pending_reports():
                await asyncio.sleep(0)
        assert served.reported("ReportFinalToken", "failed") == 1


async def test_clients_are_served_over_tls(tmp_path: Path) -> None:
    """With a certificate that is changed while the gateway runs."""
    authority = Authority()
    cert_file, key_file = authority.server().write(tmp_path)
    tls = GatewayTlsSettings(
        cert_file=str(cert_file), key_file=str(key_file), check_interval_ns=10 * NS_PER_MS
    )
    async with (
        serve_upstream() as upstream,
        serve_gateway(tmp_path, worker(upstream.address), tls=tls) as served,
    ):
        assert served.url.startswith("https://")
        answer = await served.chat(ssl=authority.context())
        assert (answer.status, json.loads(answer.body)["usage"]) == (200, USAGE)
        other = Authority("another")
        other.server().write(tmp_path)
        async with asyncio.timeout(30):
            while True:
                try:
                    async with aiohttp.ClientSession() as fresh:
                        options = {"data": BODY, "ssl": other.context()}
                        async with fresh.post(served.url, **options) as response:
                            assert response.status == 200
                            break
                except aiohttp.ClientConnectorCertificateError:
                    await asyncio.sleep(0)


async def test_running_requests_are_finished_at_the_end(tmp_path: Path) -> None:
    """New ones are told to come back; then the listener is gone."""
    has_come, let_go = asyncio.Event(), asyncio.Event()

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        has_come.set()
        await let_go.wait()
        return web.json_response({"model": "real-name"})

    async with (
        serve_upstream(handler) as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        running = asyncio.create_task(served.chat())
        await has_come.wait()
        ending = asyncio.create_task(served.gateway.stop(drain_ns=30_000 * NS_PER_MS))
        await served.log.wait_for("gateway_stopping")
        answer = await served.chat()
        assert (answer.status, answer.headers["Connection"]) == (503, "close")
        let_go.set()
        assert (await running).status == 200
        await ending
        assert served.reported("ReportFinalToken") == 1


@pytest.mark.parametrize(
    "settings",
    [
        GatewaySettings(picker=GatewayPickerSettings(target="nowhere")),
        GatewaySettings(picker=GatewayPickerSettings(pool="a/b/c")),
        GatewaySettings(tls=GatewayTlsSettings(cert_file="a")),
        GatewaySettings(upstream=GatewayUpstreamSettings(fallback_url="10.0.0.1:80")),
        GatewaySettings(upstream=GatewayUpstreamSettings(fallback_url="http://u:p@a")),
        GatewaySettings(requests=GatewayRequestSettings(tenant_header="a b")),
        GatewaySettings(requests=GatewayRequestSettings(tenant_header="X-Qos-Class")),
        GatewaySettings(requests=GatewayRequestSettings(passed_headers="x-a, grpc-timeout")),
        GatewaySettings(requests=GatewayRequestSettings(passed_headers="x-bin")),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: GatewaySettings) -> None:
    """Before anything is opened."""
    with pytest.raises(ConfigError):
        Gateway(settings)


@pytest.mark.parametrize("content", [None, "", "nonsense\n", f"{'0' * 64}\n"])
def test_a_key_file_that_is_not_usable_ends_the_start(tmp_path: Path, content: str | None) -> None:
    """Nobody is let in by mistake."""
    keys = tmp_path / "keys"
    if content is not None:
        keys.write_text(content)
    with pytest.raises(StartError):
        Gateway(GatewaySettings(requests=GatewayRequestSettings(api_key_file=str(keys))))
