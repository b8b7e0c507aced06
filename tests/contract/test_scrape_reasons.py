"""Why an engine's page cannot be had, in words that say what to look at."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from own_ports import own_target

from inferencecache.transport.engine_scrape import PageScraper, ScrapeError

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def reason_of(url: str) -> str:
    """Return why *url* has no page."""
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ScrapeError) as caught:
            await PageScraper(url, session).fetch()
    return caught.value.reason


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[str]:
    """Run a server that does *talk* with whoever connects; gives its URL."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await talk(reader, writer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/metrics"


async def test_nobody_listens() -> None:
    """A port that is free."""
    assert await reason_of(f"http://{own_target()}/metrics") == (
        "the connection is refused, so nothing listens there"
    )


async def test_no_such_host() -> None:
    """The name is reserved for not existing."""
    assert await reason_of("http://engine.invalid:8000/metrics") == "the host name has no address"


@pytest.mark.parametrize("url", ["", "engine:8000/metrics", "http://"])
async def test_no_url(url: str) -> None:
    """A forgotten scheme, a forgotten host."""
    assert (await reason_of(url)).startswith("this is no URL")


async def test_the_port_of_the_events() -> None:
    """What ZMQ says first is no HTTP."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48))
        await writer.drain()
        await reader.read()

    async with listening(greet) as url:
        assert await reason_of(url) == "what listens there does not speak HTTP"


async def test_a_connection_that_ends_at_once() -> None:
    """As when a proxy has nothing behind it."""

    async def hang_up(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.readline()

    async with listening(hang_up) as url:
        assert await reason_of(url) == "the connection is closed without an answer"


async def test_another_page() -> None:
    """The status says it."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with listening(refuse) as url:
        assert await reason_of(url) == "HTTP status 404"
