"""An engine that went away: what is kept alive of it, and told to a server that starts anew."""

import asyncio
from collections.abc import Iterable

import pytest
from engine_payloads import batch, map_store
from engine_sockets import engine_sockets
from followed import LIMIT_S, Lines, matched, producer_settings, server_at, source

from inferencecache.app.producer import Producer, running_producer
from inferencecache.app.server import running_server
from inferencecache.clock import NS_PER_S
from inferencecache.events import SyncState
from inferencecache.settings.throwaway import throwaway_server_settings

PROMPT = list(range(1, 17))


def told(producer: Producer, *, include_doubtful: bool) -> Iterable[object]:
    """Return what a server would be told of what is held."""
    (engine,) = producer._engines
    steps = engine.feed.router.mapper_of(0).live_set(include_doubtful=include_doubtful)
    return [run for runs in steps for run in runs]


@pytest.mark.parametrize(("forgotten_after_ns", "expected"), [(0, 0), (3_600 * NS_PER_S, 16)])
async def test_a_server_that_starts_anew_is_not_told_of_an_engine_that_is_long_gone(
    forgotten_after_ns: int, expected: int
) -> None:
    """One that was away for less may be the same when it comes back."""
    async with asyncio.timeout(2 * LIMIT_S), engine_sockets() as engine:
        known = source(engine, forgotten_after_ns=forgotten_after_ns)
        async with running_server(throwaway_server_settings(), Lines()) as first:
            target = first.grpc_target
        async with running_producer(producer_settings(known, servers=target), Lines()) as producer:
            async with server_at(target) as server:
                await producer.wait_synced()
                await engine.subscribed.wait()
                await engine.publish(batch(map_store([1], PROMPT)))
                await producer.until(lambda: producer.stats.sources[0].expected == 1)
                await producer.drained()
                assert matched(server, PROMPT) == 16
                await engine.stop()
                while told(producer, include_doubtful=not expected):
                    await asyncio.sleep(0)
            await producer.until(lambda: not producer.stats.servers[0].is_connected)
            async with server_at(target) as server:
                await producer.until(lambda: producer.stats.servers[0].resyncs == 2)
                await producer.drained()
                assert matched(server, PROMPT) == expected


async def test_an_engine_that_comes_back_after_long_is_told_of_at_once() -> None:
    """It is the same and holds what it held; the servers have let that expire, or know nothing."""
    async with asyncio.timeout(2 * LIMIT_S), engine_sockets() as engine:
        known = source(engine, forgotten_after_ns=0)
        async with running_server(throwaway_server_settings(), Lines()) as first:
            target = first.grpc_target
        async with running_producer(producer_settings(known, servers=target), Lines()) as producer:
            async with server_at(target):
                await producer.wait_synced()
                await engine.subscribed.wait()
                await engine.publish(batch(map_store([1], PROMPT)))
                await producer.until(lambda: producer.stats.sources[0].expected == 1)
                await producer.drained()
                past = engine.ring
                await engine.stop()
                while told(producer, include_doubtful=True):
                    await asyncio.sleep(0)
            await producer.until(lambda: not producer.stats.servers[0].is_connected)
            async with server_at(target) as server:
                await producer.until(lambda: producer.stats.servers[0].resyncs == 2)
                await producer.drained()
                assert matched(server, PROMPT) == 0
                engine.start()
                engine.ring |= past
                await producer.until(lambda: producer.stats.servers[0].delivered_keys == 2)
                assert matched(server, PROMPT) == 16


async def test_the_last_messages_of_an_engine_that_is_gone_do_not_bring_it_back() -> None:
    """A producer that is behind reads them after it has heard that the connection is lost."""
    messages, blocks = 20, 1_000
    async with (
        asyncio.timeout(2 * LIMIT_S),
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as server,
    ):
        chosen = producer_settings(source(engine), servers=server.grpc_target)
        async with running_producer(chosen, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            for first in range(0, messages * blocks, blocks):
                hashes = list(range(first, first + blocks))
                await engine.publish(batch(map_store(hashes, [first] * 16 * blocks)))
            await engine.stop()
            await producer.until(lambda: producer.stats.sources[0].expected == messages)
            await producer.until(lambda: producer.stats.sources[0].state is SyncState.CONNECTING)
            while told(producer, include_doubtful=False):
                await asyncio.sleep(0)

            await producer.drained()
            assert server.plane.index.entries == messages * blocks
            assert not producer.is_synced
