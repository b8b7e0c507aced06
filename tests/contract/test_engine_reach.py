"""Why an engine cannot be heard is said once per outage, with the doctor's code."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import zmq
from engine_page import engine_page
from engine_sockets import TOPIC, EngineSockets, engine_sockets
from followed import LIMIT_S, PATIENT, Lines
from own_ports import own_port, own_target

from inferencecache.app.producer_engine import FollowedEngine, Surroundings
from inferencecache.app.producer_reach import Reach
from inferencecache.app.producer_watch import Watched
from inferencecache.clock import NS_PER_MS
from inferencecache.settings.producer import SequenceSettings
from inferencecache.settings.subscribe import EngineSettings, SourceSettings
from inferencecache.transport.system_clock import SystemClock

QUICK = SequenceSettings(replay_idle_ns=50 * NS_PER_MS)


class Following:
    """Subscribers at work, and a look at their connections.

    Attributes:
        log: What was said.
    """

    def __init__(self, engine: FollowedEngine, watched: Watched, log: Lines) -> None:
        self.engine = engine
        self.log = log
        self._watched = watched
        self._reach = Reach(log)

    async def look(self, times: int = 1) -> None:
        """Look as often as a producer does in *times* seconds."""
        for _ in range(times):
            await self._reach.look(self.engine.subscribers)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until *holds*, which only the subscribers make true."""
        await self._watched.until(holds)

    def said(self, event: str) -> list[object]:
        """Return the codes said with *event*."""
        return [fields["code"] for fields in self.log.fields_of(event)]


@asynccontextmanager
async def following(
    endpoint: str, replay_endpoint: str = "", sequence: SequenceSettings = PATIENT
) -> AsyncIterator[Following]:
    """Follow what is at *endpoint*, without a server."""
    log, watched, context = Lines(), Watched(), zmq.Context()
    settings = SourceSettings(
        engine=EngineSettings(
            endpoint=endpoint, replay_endpoint=replay_endpoint, replica_id="pod-0", metrics_url=""
        ),
        sequence=sequence,
    )
    async with aiohttp.ClientSession() as session, asyncio.timeout(LIMIT_S):
        around = Surroundings(
            context=context,
            session=session,
            links=(),
            clock=SystemClock(),
            log=log,
            changed=watched.changed,
        )
        engine = FollowedEngine(settings, around)
        tasks = [asyncio.create_task(work) for _, work in engine.tasks()]
        try:
            yield Following(engine, watched, log)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            context.destroy(0)


async def test_nobody_listens() -> None:
    """Not at once, since engines take their time, and not twice."""
    async with following(f"tcp://{own_target()}") as found:
        await found.look(2)
        assert found.said("engine_unreachable") == []
        await found.look(5)

        assert found.said("engine_unreachable") == ["EC003"]


async def test_a_socket_in_the_file_system(tmp_path: Path) -> None:
    """There is no port to look at, so no more is said than that nobody answers."""
    async with following(f"ipc://{tmp_path}/events") as found:
        await found.look(3)

        assert found.said("engine_unreachable") == ["EC003"]


async def test_the_engine_s_http_port() -> None:
    """Handshakes that fail again and again are not connections lost again and again."""
    async with engine_page() as page, following(page.url.replace("http", "tcp")[:-8]) as found:
        await found.look(3)

        assert found.said("engine_unreachable") == ["EC005"]
        assert "engine_disconnected" not in found.log.events


async def test_the_replay_s_port() -> None:
    """Another kind of socket listens there."""
    async with engine_sockets() as engine, following(engine.replay_endpoint) as found:
        await found.look(3)

        assert found.said("engine_unreachable") == ["EC006"]


@pytest.mark.parametrize(("kind", "code"), [("nobody", "EY003"), ("events", "EY007")])
async def test_a_replay_that_is_not_there(kind: str, code: str) -> None:
    """Said once it has been asked for twice in vain."""
    async with engine_sockets() as engine:
        replay = f"tcp://{own_target()}" if kind == "nobody" else engine.endpoint
        async with following(engine.endpoint, replay, QUICK) as found:
            await found.until(lambda: found.engine.subscribers[0].unanswered_replays >= 2)
            await found.look(3)

            assert found.said("replay_unanswered") == [code]
            assert found.said("engine_unreachable") == []


async def test_a_second_outage_is_said_again() -> None:
    """What was mended is watched anew."""
    engine = EngineSockets(TOPIC, own_port(), own_port())
    try:
        async with following(engine.endpoint, engine.replay_endpoint) as found:
            await found.look(4)
            engine.start()
            await found.until(lambda: "engine_synced" in found.log.events)
            await found.look(1)
            await engine.stop()
            await found.until(lambda: "engine_disconnected" in found.log.events)
            await found.look(4)

            assert len(found.said("engine_unreachable")) == 2
            assert found.said("replay_unanswered") == []
    finally:
        engine.close()
