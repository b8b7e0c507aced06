"""Hostile clients before, hostile engines behind: no bug, no 500, nothing left in flight."""

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from served_gateway import CHAT, LOCAL, ServedGateway, serve_gateway, serve_upstream, worker

from inferencecache.clock import NS_PER_MS
from inferencecache.settings.gateway import GatewayRequestSettings
from inferencecache.settings.gateway_listen import GatewayListenSettings

CI_INPUTS, LONG_INPUTS = 200, 20_000
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")

METHODS = (b"POST", b"POST", b"POST", b"POST", b"GET", b"HEAD", b"PUT", b"CONNECT", b"\xff", b"")
PATHS = (
    CHAT.encode(),
    CHAT.encode(),
    CHAT.encode(),
    b"/v1/messages",
    b"/v1/embeddings?a=%0d%0a&b=\xff",
    b"/v1/chat/completions?" + b"x" * 9_000,
    b"*",
    b"http://other/v1/completions",
    b"/%00",
    b"/v1/chat/completions#x",
    b"/../v1/responses",
)
HEADERS = (
    b"X-Tenant-Id: acme",
    b"X-Tenant-Id: \xff\xfe",
    b"X-Tenant-Id: \xf0\x9f\x98\x80",
    b"X-Qos-Class: batch",
    b"X-Qos-Class: \xff",
    b"X-Request-Id: a\tb",
    b"X-Request-Id: " + b"%" * 500,
    b"X-Request-Id: \xe4\xf6",
    b"Authorization: Bearer x",
    b"Content-Type: \xc3\x28",
    b"Content-Type: application/json",
    b"Connection: close",
    b"Connection: X-Tenant-Id, upgrade",
    b"Upgrade: websocket",
    b"Expect: 100-continue",
    b"Expect: the-unexpected",
    b"Content-Encoding: gzip",
    b"TE: trailers",
    b"Transfer-Encoding: gzip",
    b"Transfer-Encoding: chunked, identity",
    b"Content-Length: -1",
    b"Content-Length: 99999999999999999999",
    b"Accept: " + b"a" * 9_000,
    b": nameless",
    b"No colon",
    b" folded: yes",
    b"X-Nul: a\x00b",
)
BODIES = (
    b'{"model": "m", "messages": []}',
    b'{"model": "m", "messages": [], "stream": true}',
    b'{"model": "m\\ud800", "messages": []}',
    b'{"model": "m\\r\\nX-Evil: 1", "prompt": "x"}',
    b'{"model": "' + b"y" * 3_000 + b'", "prompt": "x"}',
    b"",
    b"null",
    b"\x00\xff",
    b"{" * 2_000,
    b'{"model": "m", "prompt": "' + b"x" * 300_000 + b'"}',
)
ANSWERS = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{}{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    b'HTTP/1.1 200 \r\nContent-Type: text/event-stream\r\n\r\ndata: {"usage": {\n\n\xff',
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Odd: \xff\xfe\r\n\r\ndata: [DONE]",
    b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 20_000 + b"\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\n\r\n",
    b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    b"HTTP/1.1 401 Who\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 429 Slow\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 599 Odd\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 999 Odder\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\n{}",
    b"HTTP/9.9 200 OK\r\n\r\n",
    b"HTTP/1.1 banana\r\n\r\n",
    b"SSH-2.0-OpenSSH\r\n",
    b"\x16\x03\x01\x00",
    b"",
)


class Hostile:
    """Makes requests from a seed.

    Args:
        seed: Decides everything.
        wildness: How likely each part of a request is an odd one.
    """

    def __init__(self, seed: int, wildness: float) -> None:
        self._random = random.Random(seed)
        self._answers = random.Random(seed)
        self._wildness = wildness

    def request(self) -> bytes:
        """Return the bytes of a request, more or less."""
        choose = self._random
        method = choose.choice(METHODS) if self._is_wild else b"POST"
        path = choose.choice(PATHS) if self._is_wild else CHAT.encode()
        body = choose.choice(BODIES if self._is_wild else BODIES[:2])
        lines = [method + b" " + path + b" HTTP/1.1", b"Host: g"]
        if self._is_wild:
            lines += choose.sample(HEADERS, choose.choice((1, 1, 2, 4)))
        if choose.random() < 0.5:
            off = choose.choice((-1, 5, 10**6)) if self._is_wild else 0
            lines.append(b"Content-Length: %d" % max(len(body) + off, 0))
        else:
            lines.append(b"Transfer-Encoding: chunked")
            body = self._chunked(body)
        whole = b"\r\n".join(lines) + b"\r\n\r\n" + body
        if self._is_wild and self._is_wild:
            whole = whole[: choose.randrange(len(whole))]
        if self._is_wild and self._is_wild:
            at = choose.randrange(len(whole) or 1)
            whole = whole[:at] + bytes([choose.randrange(256)]) + whole[at + 1 :]
        return whole * choose.choice((1, 1, 1, 2))

    def _chunked(self, body: bytes) -> bytes:
        size, end = b"%x" % len(body), b"0\r\n\r\n"
        if self._is_wild:
            size = self._random.choice((size, b"zz", b"-1", b"%x" % (len(body) + 9)))
            end = self._random.choice((b"0\r\nX: y\r\n\r\n", b"", b"garbage"))
        return size + b"\r\n" + body + b"\r\n" + end

    @property
    def _is_wild(self) -> bool:
        return self._random.random() < self._wildness

    def answer(self) -> bytes:
        """Return the bytes of an answer, more or less."""
        return self._answers.choice(ANSWERS)

    @property
    def is_patient(self) -> bool:
        """Whether this client waits for its answer."""
        return self._random.random() < 0.7


@asynccontextmanager
async def hostile_engine(hostile: Hostile) -> AsyncIterator[str]:
    """Serve answers of *hostile*, after reading some of a request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(hostile.answer())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        server.close()
        await server.wait_closed()


async def send(served: ServedGateway, request: bytes, *, is_patient: bool) -> bytes:
    """Send one request, and wait until an answer begins, or go."""
    port = int(served.gateway.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    with suppress(OSError):
        writer.write(request)
        await writer.drain()
        if is_patient:
            answer = await reader.read(65_536)
    writer.transport.abort()
    return answer


async def play(directory: Path, seed: int, inputs: int, address: str, hostile: Hostile) -> None:
    """Let hostile clients at a gateway, eight at a time, then look what is left of it."""
    listen = GatewayListenSettings(bind_address=LOCAL, header_timeout_ns=200 * NS_PER_MS)
    requests = GatewayRequestSettings(upload_idle_ns=200 * NS_PER_MS)
    async with serve_gateway(
        directory, worker(address), listen=listen, requests=requests
    ) as served:
        statuses = set()
        for _ in range(inputs // 8):
            # Drawn before any is sent: who gets through first is up to the machine.
            sent = [
                send(served, hostile.request(), is_patient=hostile.is_patient) for _ in range(8)
            ]
            for answer in await asyncio.gather(*sent):
                statuses |= set(STATUS.findall(answer))
        assert b"500" not in statuses, seed
        assert len(statuses) >= 5, seed
        await served.settled()
        assert served.log.named("gateway_request_failed") == []
        page = await served.metrics()
        assert "inferencecache_gateway_inflight 0.0" in page
        assert "inferencecache_gateway_replay_bytes 0.0" in page
        assert "inferencecache_gateway_reports_pending 0.0" in page
        assert served.reported("Abort", "failed") == served.reported("Abort", "dropped") == 0


def counts(config: pytest.Config) -> int:
    """Return how many requests are sent."""
    return LONG_INPUTS if config.getoption("--long") else CI_INPUTS


@pytest.mark.parametrize("seed", [1, 2])
async def test_hostile_clients(tmp_path: Path, seed: int, pytestconfig: pytest.Config) -> None:
    """Before an engine that works, which a good client still reaches."""
    hostile = Hostile(seed, 0.25)
    async with serve_upstream() as upstream:
        await play(tmp_path, seed, counts(pytestconfig), upstream.address, hostile)


@pytest.mark.parametrize("seed", [3, 4])
async def test_hostile_engines_and_clients(
    tmp_path: Path, seed: int, pytestconfig: pytest.Config
) -> None:
    """Whatever an engine sends, a client gets an answer that is one, or the connection's end."""
    hostile = Hostile(seed, 0.05)
    async with hostile_engine(hostile) as address:
        await play(tmp_path, seed, counts(pytestconfig), address, hostile)
