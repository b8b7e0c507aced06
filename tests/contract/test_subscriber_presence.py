"""A subscriber tells whether its engine is there, and what a batch that cannot be read may hide."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from engine_payloads import T16, batch, map_store
from engine_sockets import EngineSockets, engine_sockets
from followed import LIMIT_S
from subscriber_rig import HalfwaySink, subscriber

from inferencecache.clock import ManualClock

BLOCK = batch(map_store([1], T16))


class WatchedSink(HalfwaySink):
    """Tells what the slow cycle would report."""

    def __init__(self) -> None:
        super().__init__(0)
        self.doubts = 0

    def doubt(self, rank: int) -> None:
        """Note a loss, and that it was noted."""
        super().doubt(rank)
        self.doubts += 1
        self.changed.set()

    def keeps_alive(self) -> bool:
        """Tell whether there is anything to report."""
        steps = self.router.mapper_of(0).live_set(include_doubtful=False)
        return any(runs for runs in steps)

    async def until(self, *, keeps_alive: bool) -> None:
        """Wait until there is something to report, or nothing."""
        while self.keeps_alive() != keeps_alive:
            self.changed.clear()
            await self.changed.wait()


@asynccontextmanager
async def following(*, has_replay: bool) -> AsyncIterator[tuple[EngineSockets, WatchedSink]]:
    """Follow an engine that has published one block."""
    sink = WatchedSink()
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        made = subscriber(engine, ManualClock(), sink, has_replay=has_replay)
        running = asyncio.create_task(made.run())
        await engine.subscribed.wait()
        if has_replay:
            await engine.requested.wait()
        await engine.publish(BLOCK)
        await sink.until(keeps_alive=True)
        yield engine, sink
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_an_engine_that_is_gone_keeps_nothing_alive() -> None:
    """What it held is told again once the engine is back and shows that it is the same."""
    async with following(has_replay=True) as (engine, sink):
        await engine.stop()
        await sink.until(keeps_alive=False)
        assert len(sink.held()) == 1
        engine.start()
        engine.ring = {0: BLOCK}
        await sink.until(keeps_alive=True)
        assert len(sink.held()) == 1
        assert sink.doubts == 0


async def test_an_engine_that_is_gone_for_good_keeps_nothing_alive() -> None:
    """The same without a replay socket; who comes back then is in doubt."""
    async with following(has_replay=False) as (engine, sink):
        await engine.stop()
        await sink.until(keeps_alive=False)
        engine.start()
        while not sink.doubts:
            sink.changed.clear()
            await sink.changed.wait()
        assert not sink.keeps_alive()


@pytest.mark.parametrize("has_replay", [True, False])
async def test_a_batch_that_cannot_be_read_casts_doubt(*, has_replay: bool) -> None:
    """As one that was lost would: it may have removed anything."""
    async with following(has_replay=has_replay) as (engine, sink):
        await engine.publish(b"\xc1")
        await sink.until(keeps_alive=False)
        assert sink.doubts == 1
        assert len(sink.held()) == 1
