"""A producer whose server cannot be reached says so, once per outage, and why."""

import asyncio

import pytest
from engine_sockets import engine_sockets
from followed import LIMIT_S, Lines, producer_settings, source
from scripted_cache_server import ScriptedServer

from inferencecache.app.producer import Producer, running_producer
from inferencecache.errors import ConfigError

CONNECTION_EVENTS = frozenset({"server_unreachable", "server_connected", "server_lost"})


class HeardLines(Lines):
    """A log one can wait for."""

    def __init__(self) -> None:
        super().__init__()
        self._heard = asyncio.Event()

    def debug(self, event: str, **fields: object) -> None:
        """Keep one line, and wake who waits."""
        super().debug(event, **fields)
        self._heard.set()

    info = warning = error = exception = debug

    def about(self, server: str) -> list[str]:
        """Return what was told of the connection to *server*, in order."""
        return [
            event
            for event, fields in self.lines
            if fields.get("server") == server and event in CONNECTION_EVENTS
        ]

    def reasons(self, server: str) -> set[object]:
        """Return why *server* could not be reached."""
        named = [fields for _, fields in self.lines if fields.get("server") == server]
        return {fields["reason"] for fields in named if "reason" in fields}

    async def until(self, server: str, *events: str) -> None:
        """Wait until *events* have been told of *server*."""
        async with asyncio.timeout(LIMIT_S):
            while len(self.about(server)) < len(events):
                self._heard.clear()
                await self._heard.wait()
        assert tuple(self.about(server)) == events


async def test_outage_is_told_once_with_its_reason() -> None:
    """At the start and after every loss one line says why; attempts go on without more lines."""
    server = ScriptedServer()
    await server.start()
    await server.kill()
    here, nowhere = server.target, "no-such-host.invalid:9090"
    log = HeardLines()
    async with (
        engine_sockets() as engine,
        running_producer(producer_settings(source(engine), servers=f"{here},{nowhere}"), log),
    ):
        await log.until(here, "server_unreachable")
        await log.until(nowhere, "server_unreachable")
        again = ScriptedServer()
        await again.start(here)
        await log.until(here, "server_unreachable", "server_connected")
        await again.kill()
        await log.until(
            here, "server_unreachable", "server_connected", "server_lost", "server_unreachable"
        )
        assert log.about(nowhere) == ["server_unreachable"]

    assert log.reasons(nowhere) == {"the host name has no address"}
    assert "the connection is refused, so nothing listens there" in log.reasons(here)


@pytest.mark.parametrize("server", ["cache", "http://cache:9090", "cache:9090,:9091"])
async def test_what_is_no_address_is_refused(server: str) -> None:
    """Nothing starts with an address that cannot be meant."""
    async with engine_sockets() as engine:
        settings = producer_settings(source(engine), servers=server)
        with pytest.raises(ConfigError, match=r"server.*HOST:PORT"):
            Producer(settings, Lines())
