"""A control listener that one peer floods still serves another, over real sockets.

The addresses 127.0.0.1 and 127.0.0.2 are the two peers.
"""

import asyncio
import hashlib
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from certificates import Authority
from controlled import Controlled, bearer, controlled
from token_review_api import CONTROLLER, cluster

from inferencecache.clock import NS_PER_MS
from inferencecache.settings.auth import AuthSettings
from inferencecache.settings.control import ControlSettings
from inferencecache.settings.server import ServerSettings
from inferencecache.settings.throwaway import throwaway_server_settings

FREE = "127.0.0.1:0"
IDLE = 1_000
TOKEN = "t"


class Flood:
    """Many connections of one peer that say nothing.

    Args:
        port: Where to.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._sockets: list[socket.socket] = []

    async def open(self, count: int, first_bytes: bytes = b"") -> None:
        """Open *count* connections more."""
        loop = asyncio.get_running_loop()
        for _ in range(count):
            opened = socket.socket()
            opened.setblocking(False)  # noqa: FBT003 - the library's own
            self._sockets.append(opened)
            await loop.sock_connect(opened, ("127.0.0.1", self._port))
            if first_bytes:
                await loop.sock_sendall(opened, first_bytes)

    def close(self) -> None:
        """Close them all."""
        for opened in self._sockets:
            opened.close()


@asynccontextmanager
async def flooded(control: Controlled, first_bytes: bytes = b"") -> AsyncIterator[Flood]:
    """Flood the control listener for the length of the block."""
    flood = Flood(control.server.addresses.control.port)
    try:
        await flood.open(IDLE, first_bytes)
        yield flood
    finally:
        flood.close()


def settings_of(
    directory: Path, *, with_tls: bool, **limits: int
) -> tuple[ServerSettings, ssl.SSLContext]:
    """Return a server's settings, and what its clients trust."""
    authority = Authority()
    cert_file, key_file = map(str, authority.server().write(directory)) if with_tls else ("", "")
    tokens = directory / "tokens"
    tokens.write_text(hashlib.sha256(TOKEN.encode()).hexdigest())
    control = ControlSettings(
        bind_address=FREE, tls_cert_file=cert_file, tls_key_file=key_file, **limits
    )
    auth = AuthSettings(token_file=str(tokens))
    return throwaway_server_settings(control=control, auth=auth), authority.context()


async def statuses_of_another_peer(
    control: Controlled, trusted: ssl.SSLContext, count: int
) -> list[int]:
    """Ask *count* times from another address, each time over a new connection."""
    connector = aiohttp.TCPConnector(local_addr=("127.0.0.2", 0), force_close=True)
    page = control.server.control_url + "/snapshot"
    statuses = []
    async with aiohttp.ClientSession(connector=connector, headers=bearer(TOKEN)) as http:
        for _ in range(count):
            async with http.get(page, ssl=trusted) as reply:
                statuses.append(reply.status)
    return statuses


@pytest.mark.parametrize("with_tls", [False, True])
@pytest.mark.parametrize("first_bytes", [b"", b"GET /snapshot HTTP/1.1\r\n"])
async def test_another_peer_is_served(
    tmp_path: Path, first_bytes: bytes, *, with_tls: bool
) -> None:
    """A thousand silent connections, before a handshake or within a head, shut nobody out."""
    settings, trusted = settings_of(
        tmp_path, with_tls=with_tls, header_timeout_ns=600_000 * NS_PER_MS
    )
    async with (
        controlled(settings) as control,
        asyncio.timeout(60),
        flooded(control, first_bytes),
    ):
        assert await statuses_of_another_peer(control, trusted, 20) == [200] * 20


@pytest.mark.parametrize("with_tls", [False, True])
async def test_the_flood_ends_by_itself(tmp_path: Path, *, with_tls: bool) -> None:
    """Handshakes and heads that do not come are given up, so the same peer is served, too."""
    settings, trusted = settings_of(
        tmp_path, with_tls=with_tls, header_timeout_ns=300 * NS_PER_MS, connections_max=20
    )
    async with controlled(settings) as control, asyncio.timeout(60), flooded(control):
        page = control.server.control_url + "/snapshot"
        status = 0
        while status != 200:
            try:
                async with control.http.get(page, ssl=trusted, headers=bearer(TOKEN)) as reply:
                    status = reply.status
            except aiohttp.ClientError:
                continue


async def test_strangers_take_no_place_of_requests(tmp_path: Path) -> None:
    """While Kubernetes thinks about a stranger's token, somebody known gets the only place."""
    tokens = tmp_path / "tokens"
    tokens.write_text(hashlib.sha256(TOKEN.encode()).hexdigest())
    (tmp_path / "account").mkdir()
    async with cluster(tmp_path / "account") as api, asyncio.timeout(60):
        api.may_answer.clear()
        auth = AuthSettings(
            token_file=str(tokens),
            allowed_controller_sa=CONTROLLER,
            service_account_dir=str(api.directory),
        )
        control_settings = ControlSettings(bind_address=FREE, requests_max=1)
        settings = throwaway_server_settings(auth=auth, control=control_settings)
        async with controlled(settings, api.environ) as control:
            strangers = [
                asyncio.create_task(control.get("/snapshot", f"stranger-{number}"))
                for number in range(5)
            ]
            await api.was_asked.wait()
            assert (await control.get("/snapshot", TOKEN)).status == 200
            api.may_answer.set()
            assert {(await each).status for each in strangers} == {401}
            name = "inferencecache_snapshot_auth_total"
            assert await control.metric(name, result="ok") == 1
            assert await control.metric(name, result="unauth") == 5
