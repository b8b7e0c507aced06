"""What goes in comes out: bodies, headers, answers, and what the picker is told."""

import asyncio
import hashlib
import io
import json
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from served_gateway import (
    CHAT,
    USAGE,
    backend,
    serve_gateway,
    serve_upstream,
    tiers,
    vendor,
    worker,
)

from inferencecache.settings.gateway import GatewayPickerSettings, GatewayRequestSettings

BODY = b'{ "model" : "m", "messages": [{"role": "user", "content": "hi"}], "n": 1.0 }'
MIB = 1_048_576


async def test_a_request_goes_where_the_picker_says(tmp_path: Path) -> None:
    """With the model's own name in it; the answer comes back as it is, and both reports arrive."""
    async with (
        serve_upstream() as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        answer = await served.chat(BODY, headers={"X-Request-Id": "r1"})
        assert (answer.status, json.loads(answer.body)["usage"]) == (200, USAGE)
        assert answer.headers["X-Inference-Requested-Model"] == "m"
        assert answer.headers["X-Request-Id"] == "r1"
        ((path, headers, body),) = upstream.requests
        assert path == "/v1/chat/completions"
        assert body == BODY.replace(b'"m"', b'"real-name"')
        assert headers["content-length"] == str(len(body))
        assert headers["accept-encoding"] == "identity"
        await served.settled()
        assert served.reported("ReportFirstToken") == 1
        assert served.reported("ReportFinalToken") == 1
        assert served.reported("Abort") == served.reported("Abort", "unknown") == 0


async def test_headers_go_on_but_for_those_that_are_nobodys_business(tmp_path: Path) -> None:
    """In both directions; what the picker decided is shown where a setting says so."""

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(
            body=b"{}", headers={"X-Engine": "1", "Set-Cookie": "a=b", "Keep-Alive": "timeout=9"}
        )

    async with (
        serve_upstream(handler) as upstream,
        serve_gateway(
            tmp_path,
            worker(upstream.address),
            requests=GatewayRequestSettings(shows_decision=True),
        ) as served,
    ):
        sent = {
            "Authorization": "Bearer for-the-gateway",
            "X-Api-Key": "for-the-gateway",
            "Cookie": "session=1",
            "X-Tenant-Id": "acme",
            "X-Trace": "t",
            "Content-Type": "application/json",
        }
        answer = await served.chat(headers=sent)
        ((_, headers, _),) = upstream.requests
        assert (headers["x-trace"], headers["content-type"]) == ("t", "application/json")
        assert not {"authorization", "x-api-key", "cookie", "x-tenant-id"} & headers.keys()
        assert headers["x-request-id"] == answer.headers["X-Request-Id"]
        assert answer.headers["X-Engine"] == "1"
        assert not {"Set-Cookie", "Keep-Alive"} & set(answer.headers)
        assert answer.headers["X-Inference-Destination"] == upstream.address
        assert (
            "tier=" in answer.headers["X-Inference-Reason"] or answer.headers["X-Inference-Reason"]
        )


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("size", [1, 300_000, 5 * MIB])
async def test_bodies_of_any_size_arrive_whole(
    tmp_path: Path, size: int, is_chunked: object
) -> None:
    """With and without a length, through pieces of any size."""
    body = b'{"model": "m", "messages": ["' + b"x" * size + b'"]}'

    async def pieces() -> object:
        for start in range(0, len(body), 70_001):
            yield body[start : start + 70_001]

    async with (
        serve_upstream() as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        answer = await served.chat(pieces() if is_chunked else io.BytesIO(body))
        assert answer.status == 200
        assert upstream.requests[0][2] == body.replace(b'"m"', b'"real-name"')
        await served.settled()
        assert served.fleet.server.picker.plane.bodies.buffered_bytes == 0


async def test_a_body_waits_for_whoever_reads_it_slowly(tmp_path: Path) -> None:
    """A client that sends without end is held up until the picker has room; 413 is the end."""
    requests = GatewayRequestSettings(body_bytes_max=2 * MIB)
    async with (
        serve_upstream() as upstream,
        serve_gateway(tmp_path, worker(upstream.address), requests=requests) as served,
    ):
        answer = await served.chat(io.BytesIO(b"x" * (2 * MIB + 1)))
        assert answer.status == 413

        async def pieces() -> object:
            for _ in range(3):
                yield b"x" * MIB

        answer = await served.chat(pieces())
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (413, "body_too_large")
        assert upstream.requests == []
        await served.settled()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_request"),
        (b"nonsense", 400, "invalid_request"),
        (b'{"model": "nobody", "messages": []}', 404, "model_not_found"),
    ],
)
async def test_requests_without_a_destination(
    tmp_path: Path, body: bytes, status: int, code: str
) -> None:
    """The client is told why, in the API's own form."""
    async with serve_gateway(tmp_path, worker("127.0.0.1:1")) as served:
        answer = await served.chat(body)
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (status, code)
        async with served.client.post(served.gateway.url + "/v1/messages", data=body) as response:
            assert response.status == status
            assert (await response.json())["type"] == "error"
        await served.settled()


async def test_nobody_to_take_it_is_worth_another_try(tmp_path: Path) -> None:
    """503 says after how many seconds."""
    async with serve_gateway(
        tmp_path,
        worker("127.0.0.1:1"),
        picker=GatewayPickerSettings(pool="elsewhere/none"),
    ) as served:
        answer = await served.chat()
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert b"pool=unknown" in answer.body


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("GET", "/", {}, 404),
        ("POST", "/v1/chat", {}, 404),
        ("POST", "/v1/chat/completions/", {}, 404),
        ("POST", "/v1/../v1/chat/completions", {}, 404),
        ("GET", CHAT, {}, 405),
        ("DELETE", CHAT, {}, 405),
        ("POST", CHAT, {"headers": {"Content-Encoding": "gzip"}, "data": b"x"}, 415),
        ("POST", CHAT + "?a=b", {"data": b"{}"}, 400),
    ],
)
async def test_what_the_head_alone_decides(
    tmp_path: Path, method: str, path: str, options: dict[str, object], status: int
) -> None:
    """Without asking the picker, but for the last."""
    async with serve_gateway(tmp_path, worker("127.0.0.1:1")) as served:
        url = aiohttp.client.URL(served.gateway.url + path, encoded=True)
        async with served.client.request(method, url, **options) as response:
            assert response.status == status
            assert (await response.json())["error"]["message"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Tenant-Id": "t" * 8_000}, 400),
        ({f"X-Passed-{number}": "v" * 7_000 for number in range(12)}, 431),
        ({"X-Passed-0": "v"}, 200),
    ],
)
async def test_heads_that_the_picker_does_not_take(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    """Are the client's own fault: no 503, and no body waits in the picker for a Pick."""
    requests = GatewayRequestSettings(
        passed_headers=",".join(f"x-passed-{number}" for number in range(12))
    )
    async with (
        serve_upstream() as upstream,
        serve_gateway(tmp_path, worker(upstream.address), requests=requests) as served,
    ):
        assert (await served.chat(headers=headers)).status == status
        await served.settled()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("X-Tenant-Id", 400),
        ("X-Qos-Class", 400),
        ("Content-Encoding", 415),
        ("Authorization", 200),
        ("X-Other", 200),
    ],
)
async def test_what_is_said_twice_is_not_guessed(tmp_path: Path, header: str, status: int) -> None:
    """Neither whose request it is, nor how long it can wait, nor what its body is."""
    headers = [(header, "identity"), (header, "batch")]
    async with (
        serve_upstream() as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        answer = await served.chat(headers=headers)
        assert answer.status == status
        assert (header.lower() in answer.body.decode().lower()) == (status != 200)


@pytest.mark.parametrize(("header", "start"), [("Authorization", "Bearer "), ("X-Api-Key", "")])
async def test_two_keys_are_none(tmp_path: Path, header: str, start: str) -> None:
    """Though each of them is known."""
    keys = tmp_path / "keys"
    digests = {tenant: hashlib.sha256(tenant.encode()).hexdigest() for tenant in "ab"}
    keys.write_text("".join(f"{digest} {tenant}\n" for tenant, digest in digests.items()))
    async with (
        serve_upstream() as upstream,
        serve_gateway(
            tmp_path,
            worker(upstream.address),
            requests=GatewayRequestSettings(api_key_file=str(keys)),
        ) as served,
    ):
        for shown, status in ("a", 200), ("b", 200), ("ab", 400):
            headers = [(header, start + key) for key in shown]
            assert (await served.chat(headers=headers)).status == status


async def test_tenants_come_from_keys_where_there_are_any(tmp_path: Path) -> None:
    """Whoever has none is refused; a key that is taken away is refused at once."""
    keys = tmp_path / "keys"
    digest = hashlib.sha256(b"k-acme").hexdigest()
    keys.write_text(f"{digest} acme # the first\n")
    rules = (
        "apiVersion: inferencecache.io/v1alpha1\nkind: PickerPolicy\nmetadata: {name: p}\n"
        "spec: {rules: [{tenants: [acme], action: Allow}], defaultAction: Deny}\n"
    )
    async with (
        serve_upstream() as upstream,
        serve_gateway(
            tmp_path,
            worker(upstream.address),
            rules,
            requests=GatewayRequestSettings(api_key_file=str(keys)),
        ) as served,
    ):
        assert (await served.chat()).status == 401
        assert (await served.chat(headers={"X-Tenant-Id": "acme"})).status == 401
        assert (await served.chat(headers={"Authorization": "Bearer nope"})).status == 401
        assert (await served.chat(headers={"Authorization": "bearer k-acme"})).status == 200
        assert (await served.chat(headers={"X-Api-Key": "k-acme"})).status == 200
        keys.write_text("broken\n")
        assert (await served.chat(headers={"X-Api-Key": "k-acme"})).status == 200
        keys.write_text(f"{digest} other\n")
        answer = await served.chat(headers={"X-Api-Key": "k-acme"})
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (403, "policy_rejected")
        keys.write_text("# nobody\n")
        assert (await served.chat(headers={"X-Api-Key": "k-acme"})).status == 401
        assert "k-acme" not in repr(served.log.events)


async def test_limits_are_429(tmp_path: Path) -> None:
    """And go away with the request that uses them up."""
    rules = (
        "apiVersion: inferencecache.io/v1alpha1\nkind: PickerPolicy\nmetadata: {name: p}\n"
        "spec: {rules: [{tenants: [acme], action: Limit, limits: {maxRequestsInFlight: 1}}],"
        " defaultAction: Allow}\n"
    )
    let_go, has_come = asyncio.Event(), asyncio.Event()

    async def handler(_request: web.BaseRequest) -> web.StreamResponse:
        has_come.set()
        await let_go.wait()
        return web.json_response({})

    async with (
        serve_upstream(handler) as upstream,
        serve_gateway(tmp_path, worker(upstream.address), rules) as served,
    ):
        acme = {"X-Tenant-Id": "acme"}
        first = asyncio.create_task(served.chat(headers=acme))
        await has_come.wait()
        answer = await served.chat(headers=acme)
        assert (answer.status, "Retry-After" in answer.headers) == (429, True)
        let_go.set()
        assert (await first).status == 200
        await served.settled()
        assert (await served.chat(headers=acme)).status == 200


async def test_a_client_that_asks_first_is_told_to_go_on(tmp_path: Path) -> None:
    """As curl does with large bodies."""
    async with (
        serve_upstream() as upstream,
        serve_gateway(tmp_path, worker(upstream.address)) as served,
    ):
        answer = await served.chat(BODY, expect100=True)
        assert answer.status == 200
        assert "expect" not in upstream.requests[0][1]


async def test_a_client_that_asks_first_is_told_that_it_is_too_much(tmp_path: Path) -> None:
    """Instead of being told to go on, and then that."""
    async with serve_gateway(tmp_path, worker("127.0.0.1:1")) as served:
        url = aiohttp.client.URL(served.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        head = f"POST {url.path} HTTP/1.1\r\nHost: g\r\nExpect: 100-continue\r\n"
        writer.write(f"{head}Content-Length: {2**40}\r\n\r\n".encode())
        async with asyncio.timeout(30):
            assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
        writer.close()


async def test_a_provider_gets_its_key_and_its_path(tmp_path: Path) -> None:
    """Behind the prefix of its backend, instead of whatever the client had shown."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "k").write_text("provider-key\n")
    async with serve_upstream() as upstream:
        url = f"baseURL: 'http://{upstream.address}/prefix/'"
        async with serve_gateway(
            tmp_path,
            vendor(path="/serve?v=1"),
            backend(f"{url}, auth: {{secretFile: k}}"),
        ) as served:
            answer = await served.chat(headers={"Authorization": "Bearer client"})
            assert answer.status == 200
            ((path, headers, _),) = upstream.requests
            assert path == "/prefix/serve?v=1"
            assert headers["authorization"] == "Bearer provider-key"
            assert "provider-key" not in repr(served.log.events)
            assert "provider-key" not in await served.metrics()


async def test_the_pool_of_the_route_is_named(tmp_path: Path) -> None:
    """By a setting; its tiers decide."""
    async with serve_upstream() as first, serve_upstream() as second:
        documents = (
            worker(first.address, "one"),
            worker(second.address, "two"),
            tiers("InferenceWorkerSet/two", "InferenceWorkerSet/one"),
        )
        async with serve_gateway(
            tmp_path, *documents, picker=GatewayPickerSettings(pool="default/chat")
        ) as served:
            assert (await served.chat()).status == 200
            assert (len(first.requests), len(second.requests)) == (0, 1)


async def test_its_own_pages(tmp_path: Path) -> None:
    """Alive, ready while it sees a picker, and what it counts."""
    async with serve_gateway(tmp_path, worker("127.0.0.1:1")) as served:
        await served.chat(b"nonsense")
        async with served.client.get(served.gateway.page_url + "/healthz") as response:
            assert response.status == 200
        async with served.client.get(served.gateway.page_url + "/readyz") as response:
            assert (response.status, await response.text()) == (200, "ok\npicker connected: true\n")
        page = await served.metrics()
        path = 'path="/v1/chat/completions",status="400"'
        assert f"inferencecache_gateway_requests_total{{{path}}} 1.0" in page
        assert "inferencecache_gateway_inflight 0.0" in page
