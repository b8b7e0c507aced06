"""The control surface bounds how long it waits for anybody, and for how many at once."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from controlled import controlled

from inferencecache.settings.control import ControlSettings
from inferencecache.settings.throwaway import throwaway_server_settings

PUSH = b'{"version":7}'


async def test_a_body_that_does_not_come_is_given_up() -> None:
    """Whoever announces a body and sends none does not hold a place for ever."""
    settings = throwaway_server_settings(
        control=ControlSettings(bind_address="127.0.0.1:0", body_timeout_ns=1_000_000)
    )

    async def silence() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with controlled(settings) as control, asyncio.timeout(30):
        reply = await control.ask("POST", "/policy", silence())  # type: ignore[arg-type] # any body
        assert (reply.status, reply.text) == (408, "the body did not arrive in time\n")
        assert reply.headers["Connection"] == "close"  # the rest of it is no next request


async def test_more_requests_than_there_is_room_for_are_turned_away() -> None:
    """A control surface that is flooded says so."""
    settings = throwaway_server_settings(
        control=ControlSettings(bind_address="127.0.0.1:0", requests_max=1)
    )
    release = asyncio.Event()
    asked = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b" "
        asked.set()
        await release.wait()
        yield PUSH

    async with controlled(settings) as control, asyncio.timeout(30):
        first = asyncio.create_task(control.ask("POST", "/policy", slow()))  # type: ignore[arg-type] # any body
        await asked.wait()
        while (await control.get("/snapshot")).status != 503:
            pass
        release.set()
        assert (await first).status == 204
        assert (await control.get("/snapshot")).status == 200


@pytest.mark.parametrize("sent", [b"", b"GET /snapshot HTTP/1.1\r\nHost: x\r\n"])
async def test_silent_connections_are_closed(sent: bytes) -> None:
    """Whoever sends no complete request does not hold a connection for ever."""
    settings = throwaway_server_settings(
        control=ControlSettings(bind_address="127.0.0.1:0", header_timeout_ns=1_000_000)
    )
    async with controlled(settings) as control, asyncio.timeout(30):
        address = control.server.addresses.control
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(sent)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
