"""A producer on real sockets: several servers, servers that come and go, order per key."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from engine_payloads import T16, batch, map_remove, map_store
from engine_sockets import engine_sockets
from followed import (
    LIMIT_S,
    REPLICA,
    WINDOW_NS,
    Lines,
    matched,
    producer_settings,
    rig,
    server_at,
    source,
)
from noting_server import NotingServer
from own_ports import own_target
from scripted_cache_server import Context

from inferencecache.app.producer import Producer, running_producer
from inferencecache.app.server import running_server
from inferencecache.clock import NS_PER_MS
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

P1 = list(range(1, 17))
P2 = list(range(1, 33))
B1 = batch(map_store([1], P1))
B2 = batch(map_store([2], P2[16:], parent=1))


async def taken_in(producer: Producer, expected: int) -> None:
    """Wait until the batch before number *expected* was taken in and delivered."""
    async with asyncio.timeout(LIMIT_S):
        await producer.until(lambda: producer.stats.sources[0].expected == expected)
        await producer.drained()


async def test_every_server_gets_everything() -> None:
    """Two servers end up with the same keys, also after an eviction."""
    async with (
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as first,
        running_server(throwaway_server_settings(), Lines()) as second,
    ):
        servers = f"{first.grpc_target},{second.grpc_target}"
        async with running_producer(producer_settings(source(engine), servers=servers)) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            for payload in (B1, B2, batch(map_store([5], T16)), batch(map_remove([5]))):
                await engine.publish(payload)
            await taken_in(producer, 4)

            for server in (first, second):
                assert matched(server, P2) == 32
                assert matched(server, T16) == 0


async def test_one_server_that_is_away_does_not_hold_up_the_other() -> None:
    """The server that is there has everything while the other one has never been seen."""
    async with (
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as server,
    ):
        servers = f"{own_target()},{server.grpc_target}"
        chosen = producer_settings(source(engine), servers=servers)
        async with running_producer(chosen, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            async with asyncio.timeout(LIMIT_S):
                await producer.until(lambda: producer.stats.servers[1].delivered_keys == 1)

            assert matched(server, P1) == 16
            assert not producer.is_drained


async def test_one_server_that_hangs_does_not_hold_up_the_other() -> None:
    """Reports and evictions reach the quick one while the other has not taken its first report."""
    slow = NotingServer()
    taking = asyncio.Event()

    async def hang(updates: AsyncIterator[pb.CacheStateUpdate], _context: Context) -> pb.Ack:
        async for _ in updates:
            taking.set()
            await slow.released.wait()
        return slow.ack

    slow.on_report = hang
    await slow.start()
    async with (
        asyncio.timeout(LIMIT_S),
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as quick,
    ):
        servers = f"{slow.target},{quick.grpc_target}"
        chosen = producer_settings(source(engine), servers=servers)
        async with running_producer(chosen, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            await taking.wait()
            await engine.publish(batch(map_store([5], T16), map_remove([1])))
            await producer.until(lambda: producer.stats.servers[1].evicted_keys == 1)

            assert (matched(quick, T16), matched(quick, P1)) == (16, 0)
            assert producer.stats.servers[0].delivered_keys == 0
            slow.released.set()
    await slow.kill()


async def test_a_server_that_comes_late_gets_what_is_held_then() -> None:
    """Stores and removals from before are told as their outcome."""
    target = own_target()
    async with (
        engine_sockets() as engine,
        running_producer(producer_settings(source(engine), servers=target), Lines()) as producer,
    ):
        for payload in (B1, B2, batch(map_store([5], T16)), batch(map_remove([2]))):
            await engine.publish(payload)
        async with asyncio.timeout(LIMIT_S):
            await producer.until(lambda: producer.stats.sources[0].expected == 4)
        async with server_at(target) as server:
            await taken_in(producer, 4)

            assert matched(server, P2) == 16
            assert matched(server, T16) == 16


async def test_a_server_that_restarts_empty_is_told_everything_again() -> None:
    """After a restart the new server holds what the engine holds by then."""
    target = own_target()
    async with engine_sockets() as engine:
        async with server_at(target) as server:
            producer = Producer(producer_settings(source(engine), servers=target), Lines())
            await producer.start()
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            await engine.publish(batch(map_store([5], T16)))
            await taken_in(producer, 2)
            assert matched(server, T16) == 16
        async with asyncio.timeout(LIMIT_S):
            await producer.until(lambda: not producer.stats.servers[0].is_connected)
        await engine.publish(B2)
        await engine.publish(batch(map_remove([5])))
        async with asyncio.timeout(LIMIT_S):
            await producer.until(lambda: producer.stats.sources[0].expected == 4)
        async with server_at(target) as server:
            await taken_in(producer, 4)

            assert matched(server, P2) == 32
            assert matched(server, T16) == 0
            assert producer.stats.servers[0].resyncs == 2
            await producer.stop()


async def test_the_last_word_on_a_key_wins_however_often_it_changes() -> None:
    """Stores and evictions of the same keys, hundreds of times, end in what was said last."""
    async with rig() as found:
        await found.synced()
        for _ in range(200):
            await found.engine.publish(B1)
            await asyncio.wait_for(
                found.producer.until(lambda: found.producer.stats.servers[0].pending_keys == 0),
                LIMIT_S,
            )
            await found.engine.publish(batch(map_remove([1]), map_store([5], T16)))
            await found.engine.publish(batch(map_remove([5])))
        await found.engine.publish(B1)
        await found.settled(601)

        assert found.matched(P1) == 16
        assert found.matched(T16) == 0


async def test_an_eviction_of_a_delivered_key_arrives() -> None:
    """A key the server has is evicted by a later removal, and its child stays evicted with it."""
    async with rig() as found:
        await found.synced()
        await found.engine.publish(B1)
        await found.engine.publish(B2)
        await found.settled(2)
        await found.engine.publish(batch(map_remove([2]), map_remove([1])))
        await found.settled(3)

        assert found.matched(P2) == 0
        assert found.producer.stats.servers[0].evicted_keys == 2


@pytest.mark.parametrize("ts", [0.0, -1.0, 8_123.0, 4e9, float("nan")])
async def test_the_engine_s_clock_never_reaches_a_server(ts: float) -> None:
    """No time, one of the boot clock, one of next century: the server's own time counts."""
    server = NotingServer()
    await server.start()
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        chosen = producer_settings(source(engine), servers=server.target)
        async with running_producer(chosen, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(batch(map_store([1], P1), ts=ts))
            await producer.until(lambda: producer.stats.servers[0].delivered_keys == 1)
            await engine.publish(batch(map_remove([1]), ts=ts))
            await producer.until(lambda: producer.stats.servers[0].evicted_keys == 1)
    await server.kill()

    assert [kind for kind, _ in server.notes] == ["clear", "store", "evict"]
    assert server.stamps_us == {0}


async def test_a_long_prompt_goes_out_as_chains_with_cumulative_counts() -> None:
    """Ten thousand blocks of one batch are found whole, and so is a suffix sent on its own."""
    prompt = [token % 50_000 for token in range(16 * 10_001)]
    async with rig() as found:
        await found.synced()
        await found.engine.publish(batch(map_store(list(range(1, 10_001)), prompt[:-16])))
        await found.settled(1)
        await found.engine.publish(batch(map_store([20_000], prompt[-16:], parent=10_000)))
        await found.settled(2)

        assert found.matched(prompt) == 160_016


async def test_what_an_earlier_producer_reported_is_cleared_first() -> None:
    """A producer does not vouch for what it has not seen."""
    async with (
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as server,
    ):
        chosen = producer_settings(source(engine, replay=False), servers=server.grpc_target)
        async with running_producer(chosen, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            await taken_in(producer, 1)
        assert matched(server, P1) == 16
        async with running_producer(chosen, Lines()) as producer:
            async with asyncio.timeout(LIMIT_S):
                await producer.until(lambda: producer.stats.servers[0].is_connected)
                await producer.drained()

            assert matched(server, P1) == 0


async def test_held_keys_are_reported_again_before_they_expire() -> None:
    """The slow repetition delivers what is held once more, without any new event."""
    async with (
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as server,
    ):
        chosen = producer_settings(
            source(engine), servers=server.grpc_target, refresh_interval_ns=20 * NS_PER_MS
        )
        async with running_producer(chosen, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            async with asyncio.timeout(LIMIT_S):
                await producer.until(lambda: producer.stats.servers[0].delivered_keys >= 3)

            assert matched(server, P1) == 16


async def test_stopping_waits_for_the_first_connection() -> None:
    """A producer that ends before its first connection is made still tells what it took in."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    target = f"127.0.0.1:{listener.getsockname()[1]}"
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        chosen = producer_settings(source(engine), servers=target, drain_ns=300 * NS_PER_MS)
        log = Lines()
        async with running_producer(chosen, log) as producer:
            await producer.wait_synced()
            assert not producer.stats.servers[0].is_connected
    listener.close()

    assert "drain_incomplete" in log.events


async def test_stopping_waits_for_no_server_that_is_away() -> None:
    """Once an attempt has failed, the end comes at once."""
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        chosen = producer_settings(
            source(engine), servers="127.0.0.1:1", drain_ns=600_000 * NS_PER_MS
        )
        log = Lines()
        async with running_producer(chosen, log) as producer:
            await producer.wait_synced()
            await producer.until(lambda: "server_unreachable" in log.events)

    assert "drain_incomplete" not in log.events


async def test_stopping_hands_over_what_is_pending() -> None:
    """What was taken in before the end is delivered before the end."""
    async with (
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as server,
    ):
        chosen = producer_settings(
            source(engine), servers=server.grpc_target, drain_ns=10_000 * NS_PER_MS
        )
        async with running_producer(chosen, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            async with asyncio.timeout(LIMIT_S):
                await producer.until(lambda: producer.stats.sources[0].expected == 1)

        assert matched(server, P1, replica_id=REPLICA) == 16
        assert WINDOW_NS < 10_000 * NS_PER_MS
