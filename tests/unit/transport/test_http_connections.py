"""What an HTTP connection may hold, over real sockets and aiohttp as it is installed."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web, web_protocol
from aiohttp.http_parser import HttpRequestParser, HttpRequestParserPy
from both_loops import on_both_loops
from certificates import Authority

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.http import HttpSettings
from inferencecache.transport.http_connections import Answer, HttpServer

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
PATIENT_NS = 60 * NS_PER_S
STRICT_NS = 50 * NS_PER_MS
"""For those who send nothing more."""
SHORT_NS = 500 * NS_PER_MS
"""Time enough for a head that is sent at once, however much the machine has to do."""
WELL_BEYOND_S = 1.2


async def echo(request: web.BaseRequest) -> web.Response:
    """Answer with the body."""
    return web.Response(body=b"<" + await request.read() + b">")


async def heedless(_request: web.BaseRequest) -> web.Response:
    """Answer without reading the body."""
    return web.Response(text="<>")


class Served:
    """A server, and what one does with it."""

    def __init__(self, server: HttpServer, port: int) -> None:
        self.server = server
        self.port = port

    async def connect(
        self, tls: ssl.SSLContext | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection."""
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=tls)


@asynccontextmanager
async def serving(
    *,
    header_timeout_ns: int = PATIENT_NS,
    idle_timeout_ns: int = PATIENT_NS,
    answer_timeout_ns: int = PATIENT_NS,
    connections_max: int = 10,
    tls: ssl.SSLContext | None = None,
    page: Answer = echo,
) -> AsyncIterator[Served]:
    """Run a server that answers with the body it got, or as *page* does."""
    settings = HttpSettings(
        bind_address="127.0.0.1:0",
        header_timeout_ns=header_timeout_ns,
        idle_timeout_ns=idle_timeout_ns,
        answer_timeout_ns=answer_timeout_ns,
        connections_max=connections_max,
    )
    server = HttpServer("test", page, settings)
    async with asyncio.timeout(30):
        address = await server.start(tls)
        try:
            yield Served(server, address.port)
        finally:
            await server.stop()


async def answer(reader: asyncio.StreamReader) -> bytes:
    """Return the next answer, up to the end of its body."""
    return await reader.readuntil(b">")


def server_context(directory: Path, authority: Authority) -> ssl.SSLContext:
    """Return what a server with a certificate of *authority* uses."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.server().write(directory))
    return context


async def ending(reader: asyncio.StreamReader) -> bytes:
    """Return everything up to the end; a reset is an end."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@on_both_loops
@pytest.mark.parametrize("sent", [b"", b"G", GET[:-2]], ids=["nothing", "a byte", "half a head"])
async def test_a_head_that_does_not_come_ends_the_connection(sent: bytes) -> None:
    """Long before the idle timeout."""
    async with serving(header_timeout_ns=STRICT_NS) as served:
        reader, writer = await served.connect()
        writer.write(sent)
        assert await ending(reader) == b""
        writer.close()


@on_both_loops
async def test_dripping_bytes_does_not_prolong_it() -> None:
    """The limit counts from the start, not from the last byte."""
    async with serving(header_timeout_ns=STRICT_NS) as served:
        reader, writer = await served.connect()
        end = asyncio.create_task(ending(reader))
        writer.write(b"GET /")
        while not end.done():
            writer.write(b"x")
            await asyncio.wait({end}, timeout=0.01)
        assert await end == b""
        writer.close()


@on_both_loops
async def test_half_a_second_head_ends_the_connection_too() -> None:
    """On a connection that is kept, the limit counts from the head's first byte."""
    async with serving(header_timeout_ns=SHORT_NS) as served:
        reader, writer = await served.connect()
        writer.write(GET)
        assert b"200 OK" in await answer(reader)
        writer.write(GET[:9])
        assert await ending(reader) == b""
        writer.close()


@on_both_loops
async def test_an_idle_connection_outlives_the_header_timeout() -> None:
    """Between two requests the idle timeout counts."""
    async with serving(header_timeout_ns=SHORT_NS) as served:
        reader, writer = await served.connect()
        writer.write(GET)
        assert b"200 OK" in await answer(reader)
        end = asyncio.create_task(answer(reader))
        assert not (await asyncio.wait({end}, timeout=WELL_BEYOND_S))[0]
        writer.write(GET)
        assert b"200 OK" in await end
        writer.close()


@on_both_loops
async def test_a_slow_body_is_none_of_its_business() -> None:
    """Once the head is there, pages set their own limits; what follows the body is served."""
    async with serving(header_timeout_ns=SHORT_NS) as served:
        reader, writer = await served.connect()
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na")
        end = asyncio.create_task(answer(reader))
        assert not (await asyncio.wait({end}, timeout=WELL_BEYOND_S))[0]
        writer.write(b"b" + GET)
        assert (await end).endswith(b"<ab>")
        assert (await answer(reader)).endswith(b"<>")
        writer.close()


@on_both_loops
async def test_pipelined_requests_are_answered_in_order() -> None:
    """What arrives at once is taken apart as ever."""
    async with serving() as served:
        reader, writer = await served.connect()
        writer.write(GET * 50)
        for _ in range(50):
            assert b"200 OK" in await answer(reader)
        writer.close()


@on_both_loops
async def test_connections_beyond_the_limit_are_closed_at_once() -> None:
    """And one that ends makes room for another."""
    async with serving(connections_max=2) as served:
        kept = [await served.connect() for _ in range(2)]
        for reader, writer in kept:
            writer.write(GET)
            assert b"200 OK" in await answer(reader)
        reader, writer = await served.connect()
        assert await ending(reader) == b""
        writer.close()
        assert served.server.connections == 2
        kept[0][1].close()
        while served.server.connections == 2:
            await asyncio.wait({asyncio.create_task(kept[0][1].wait_closed())})
        reader, writer = await served.connect()
        writer.write(GET)
        assert b"200 OK" in await answer(reader)
        writer.close()
        kept[1][1].close()


@on_both_loops
@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 10_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nAuthorization: Bearer s3cr3t\x01\r\n\r\n",
        b"GET / HTTP/1.1\r\nAuthorization: Bearer s3cr3t\r\n folded\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(502),
    ],
)
async def test_garbage_is_told_so_closed_and_not_logged(
    garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """What is no HTTP gets its 400; secrets get neither into it nor into the log."""
    async with serving() as served:
        reader, writer = await served.connect()
        writer.write(garbage)
        head, _, body = (await ending(reader)).partition(b"\r\n\r\n")
        assert b" 400 " in head
        assert b"X-Content-Type-Options: nosniff" in head
        assert body == b"the request cannot be read\n"  # of which nothing is quoted
        writer.close()
    assert not caplog.records


@on_both_loops
@pytest.mark.parametrize("parser", [HttpRequestParser, HttpRequestParserPy])
@pytest.mark.parametrize(
    ("said", "body"),
    [
        (b"Content-Encoding: gzip\r\nContent-Length: 4", b"abcd"),
        (b"Content-Encoding: deflate\r\nContent-Length: 4", b"abcd"),
        (b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked", b"4\r\nabcd\r\n0\r\n\r\n"),
        (b"Transfer-Encoding: chunked", b"no length\r\n"),
        (b"Transfer-Encoding: chunked", b"4\r\nabcd, and more\r\n"),
    ],
)
async def test_an_unread_body_may_be_anything(
    said: bytes,
    body: bytes,
    parser: type[HttpRequestParser],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The page has answered; what follows is thrown away, and strangers fill no log with it."""
    monkeypatch.setattr(web_protocol, "HttpRequestParser", parser)
    async with serving(page=heedless) as served:
        reader, writer = await served.connect()
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + said + b"\r\n\r\n")
        assert b" 200 " in await answer(reader)
        writer.write(body)
        assert await ending(reader) == b""
        writer.close()
    assert not caplog.records


@on_both_loops
async def test_a_body_is_never_unpacked() -> None:
    """Whatever its encoding is said to be: a small one cannot become a large one."""
    async with serving() as served:
        reader, writer = await served.connect()
        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n"
        writer.write(head + b"abcd")
        assert (await answer(reader)).endswith(b"<abcd>")
        writer.close()


@on_both_loops
@pytest.mark.parametrize("with_tls", [False, True])
async def test_an_answer_that_is_not_taken_is_given_up(tmp_path: Path, *, with_tls: bool) -> None:
    """Whoever asks for much and reads nothing does not hold it for ever."""
    authority = Authority()
    tls = server_context(tmp_path, authority) if with_tls else None
    asked = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000
    async with serving(answer_timeout_ns=STRICT_NS, tls=tls) as served:
        trusted = authority.context() if with_tls else None
        _, writer = await asyncio.open_connection(
            "127.0.0.1", served.port, ssl=trusted, limit=1_024
        )
        end = asyncio.create_task(writer.wait_closed())
        while not end.done():
            writer.write(asked)
            await asyncio.wait({end}, timeout=0.05)
        assert served.server.connections == 0
        with pytest.raises(OSError):  # noqa: PT011 - reset or broken, as the system has it
            await end


@on_both_loops
async def test_a_handshake_is_a_connection(tmp_path: Path) -> None:
    """One that only begins holds a place."""
    tls = server_context(tmp_path, Authority())
    async with serving(connections_max=2, tls=tls) as served:
        kept = [await served.connect() for _ in range(2)]
        reader, writer = await served.connect()
        assert await ending(reader) == b""
        writer.close()
        assert served.server.connections == 2
        for _, each in kept:
            each.close()


@on_both_loops
async def test_only_who_showed_a_certificate_is_sent_away(tmp_path: Path) -> None:
    """The others stay connected."""
    authority = Authority()
    tls = server_context(tmp_path, authority)
    tls.load_verify_locations(cadata=authority.pem.decode())
    tls.verify_mode = ssl.CERT_OPTIONAL
    async with serving(tls=tls) as served:
        contexts = (authority.context(), authority.context(authority.client("a"), tmp_path))
        (reader, writer), (certified, other) = [await served.connect(each) for each in contexts]
        for each in (writer, other):
            each.write(GET)
        for each in (reader, certified):
            assert b"200 OK" in await answer(each)
        assert served.server.end_certified() == 1
        assert await ending(certified) == b""
        writer.write(GET)
        assert b"200 OK" in await answer(reader)
        writer.close()
        other.close()


@on_both_loops
async def test_connections_are_accepted_again_when_files_are_short() -> None:
    """Whoever waits in the queue meanwhile is served afterwards."""
    async with serving() as served:
        loop = asyncio.get_running_loop()
        reader, writer = await served.connect()
        accept, failures = loop.sock_accept, iter([OSError(24, "Too many open files")] * 2)

        async def failing(listening: socket.socket) -> object:
            for error in failures:
                raise error
            return await accept(listening)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "sock_accept", failing)
            for _ in range(2):
                later_reader, later = await served.connect()
                later.write(GET)
                assert b"200 OK" in await answer(later_reader)
                later.close()
        writer.write(GET)
        assert b"200 OK" in await answer(reader)
        writer.close()


@on_both_loops
@pytest.mark.parametrize("shakes_hands", [True, False])
async def test_silence_over_tls_ends_too(tmp_path: Path, *, shakes_hands: bool) -> None:
    """Before the handshake and after it."""
    authority = Authority()
    tls = server_context(tmp_path, authority)
    async with serving(header_timeout_ns=SHORT_NS, tls=tls) as served:
        reader, writer = await served.connect(authority.context() if shakes_hands else None)
        assert await ending(reader) == b""
        writer.close()


@on_both_loops
async def test_stopping_closes_what_is_open() -> None:
    """Idle connections do not keep a server from stopping."""
    async with serving() as served:
        reader, writer = await served.connect()
        writer.write(GET)
        assert b"200 OK" in await answer(reader)
        await served.server.stop()
        assert await ending(reader) == b""
        writer.close()


@on_both_loops
async def test_a_server_that_is_stopped_at_once_leaves_its_address() -> None:
    """Before it had a turn to accept anything."""
    settings = HttpSettings(bind_address="127.0.0.1:0")
    first = HttpServer("test", echo, settings)
    address = await first.start()
    await first.stop()
    second = HttpServer("test", echo, replace(settings, bind_address=str(address)))
    assert await second.start() == address
    await second.stop()
