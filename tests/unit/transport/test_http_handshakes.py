"""Handshakes that have begun before an authority of clients is taken away, and end afterwards."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from both_loops import on_both_loops
from certificates import Authority

from inferencecache.settings.http import HttpSettings
from inferencecache.transport.http_connections import Answer, HttpServer

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@on_both_loops
@pytest.mark.parametrize("is_certified", [True, False])
async def test_who_shows_a_certificate_too_late_is_sent_away(
    tmp_path: Path, *, is_certified: bool
) -> None:
    """It was asked for one before the others were sent away, and is checked as it was then."""
    authority = Authority()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.server().write(tmp_path))
    tls.load_verify_locations(cadata=authority.pem.decode())
    tls.verify_mode = ssl.CERT_OPTIONAL
    client = authority.client("a") if is_certified else None
    received, to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
    shaking = authority.context(client, tmp_path).wrap_bio(
        received, to_send, server_hostname="127.0.0.1"
    )
    asked: list[str] = []

    async def noting(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.Response()

    async with asyncio.timeout(30), serving(noting, tls) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while not has_shaken(shaking):
            writer.write(to_send.read())
            received.write(await some(reader))
        assert server.end_certified() == 0
        shaking.write(GET)
        writer.write(to_send.read())
        heard = b""
        while not heard and (data := await some(reader)):
            received.write(data)
            heard = said(shaking)
        writer.close()
        assert heard[:15] == (b"" if is_certified else b"HTTP/1.1 200 OK")
        assert asked == ([] if is_certified else ["/"])


@asynccontextmanager
async def serving(page: Answer, tls: ssl.SSLContext) -> AsyncIterator[tuple[HttpServer, int]]:
    """Run a server; yield it and its port."""
    server = HttpServer("test", page, HttpSettings(bind_address="127.0.0.1:0"))
    address = await server.start(tls)
    try:
        yield server, address.port
    finally:
        await server.stop()


def has_shaken(shaking: ssl.SSLObject) -> bool:
    """Return whether a client has all it needs to finish a handshake."""
    try:
        shaking.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def said(shaking: ssl.SSLObject) -> bytes:
    """Return what a client has been told; nothing where there is no more than a part of it."""
    try:
        return shaking.read()
    except ssl.SSLError:
        return b""


async def some(reader: asyncio.StreamReader) -> bytes:
    """Return what comes next; nothing at the end, and a reset is one."""
    try:
        return await reader.read(65_536)
    except ConnectionResetError:
        return b""
