"""A producer on real sockets: servers that refuse, hang, fall silent or answer late."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import grpc
import pytest
from engine_payloads import T16, batch, map_clear, map_remove, map_store
from engine_sockets import engine_sockets
from followed import LIMIT_S, QUICK, REPLICA, Lines, matched, producer_settings, source
from noting_server import NotingServer
from scripted_cache_server import NO_MESSAGE, Context
from silent_proxy import SilentProxy

from inferencecache.app.producer import Producer, running_producer
from inferencecache.app.server import running_server
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.fingerprint import chain
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

P1 = list(range(1, 17))
P2 = list(range(1, 33))
B1 = batch(map_store([1], P1))
B2 = batch(map_store([2], P2[16:], parent=1))
KEY = chain(P1, 16)[0]


async def until(producer: Producer, expected: int) -> None:
    """Wait until the batch before number *expected* was taken in."""
    async with asyncio.timeout(LIMIT_S):
        await producer.until(lambda: producer.stats.sources[0].expected == expected)


async def drained(producer: Producer) -> None:
    """Wait until everything is acknowledged."""
    async with asyncio.timeout(LIMIT_S):
        await producer.drained()


async def test_a_store_never_overtakes_an_eviction_of_its_key() -> None:
    """Other keys go on while an eviction is under way; the same key waits for its end."""
    server = NotingServer()
    await server.start()
    async with engine_sockets() as engine:
        settings = producer_settings(source(engine), servers=server.target)
        async with running_producer(settings, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            await until(producer, 1)
            await drained(producer)
            server.may_evict.clear()
            await engine.publish(batch(map_remove([1])))
            await server.evicting.wait()
            await engine.publish(batch(map_store([5], T16)))
            async with asyncio.timeout(LIMIT_S):
                await producer.until(lambda: producer.stats.servers[0].delivered_keys == 2)
            await engine.publish(B1)
            await until(producer, 4)
            held_back = server.notes.count(("store", KEY))
            server.may_evict.set()
            await drained(producer)

    assert held_back == 1
    assert [kind for kind, key in server.notes if key in {KEY, b""}] == [
        "clear",
        "store",
        "evict",
        "store",
    ]
    await server.kill()


async def test_refused_evictions_and_reports_are_repeated() -> None:
    """Errors and Acks that are not accepted cost time, not data."""
    server, log = NotingServer(), Lines()
    await server.start()
    async with engine_sockets() as engine:
        settings = producer_settings(source(engine), servers=server.target)
        async with running_producer(settings, log) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            await until(producer, 1)
            await drained(producer)
            server.event_status = grpc.StatusCode.RESOURCE_EXHAUSTED
            await engine.publish(batch(map_remove([1])))
            async with asyncio.timeout(LIMIT_S):
                await producer.until(lambda: producer.stats.servers[0].failures >= 2)
            server.event_status = None
            await drained(producer)
            server.ack = pb.Ack(accepted=False, reason_code="BUSY")
            before = producer.stats.servers[0].failures
            await engine.publish(B1)
            async with asyncio.timeout(LIMIT_S):
                await producer.until(lambda: producer.stats.servers[0].failures >= before + 2)
            server.ack = pb.Ack(accepted=True)
            await drained(producer)

            assert producer.stats.servers[0].evicted_keys == 1
            assert server.notes[-1] == ("store", KEY)
    await server.kill()

    failed = [(fields["method"], fields["status"]) for fields in log.fields_of("delivery_failed")]
    assert list(dict.fromkeys(failed)) == [
        ("PublishEvent", "RESOURCE_EXHAUSTED"),
        ("ReportCacheState", "NOT_ACCEPTED"),
    ]


@pytest.mark.parametrize("change", [map_remove([1]), map_store([5], T16)])
async def test_answers_that_are_no_acks_are_no_acks(change: bytes) -> None:
    """They cost time, not data, and neither a removal nor a report waits for one for ever."""
    server = NotingServer()
    await server.start()
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        settings = producer_settings(source(engine), servers=server.target)
        async with running_producer(settings, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            await producer.until(lambda: producer.stats.servers[0].delivered_keys == 1)
            server.ack = NO_MESSAGE
            await engine.publish(batch(change))
            await producer.until(lambda: producer.stats.servers[0].failures >= 2)
            server.ack = pb.Ack(accepted=True)
            await producer.drained()
    await server.kill()


async def test_a_hanging_server_is_given_the_same_again() -> None:
    """A report without an Ack in time is repeated on a new stream."""
    server = NotingServer()
    await server.start()
    hangs = asyncio.Event()

    async def hang(updates: AsyncIterator[pb.CacheStateUpdate], context: Context) -> pb.Ack:
        if not hangs.is_set():
            hangs.set()
            await asyncio.Event().wait()
        return await server.note_report(updates, context)

    server.on_report = hang
    async with engine_sockets() as engine:
        client = replace(QUICK, delivery_timeout_ns=100 * NS_PER_MS)
        settings = producer_settings(source(engine), servers=server.target, client=client)
        async with running_producer(settings, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            await until(producer, 1)
            await drained(producer)

            assert server.notes[-1] == ("store", KEY)
            assert producer.stats.servers[0].failures >= 1
    await server.kill()


async def test_a_server_that_ends_streams_early_does_not_stop_delivery() -> None:
    """A lost call on a connection that stays is followed by everything once more."""
    server = NotingServer()
    await server.start()
    refusals = [1, 2]

    async def refuse(updates: AsyncIterator[pb.CacheStateUpdate], context: Context) -> pb.Ack:
        if refusals:
            refusals.pop()
            await context.abort(grpc.StatusCode.UNAVAILABLE, "scripted")
        return await server.note_report(updates, context)

    server.on_report = refuse
    async with engine_sockets() as engine:
        settings = producer_settings(source(engine), servers=server.target)
        async with running_producer(settings, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            await until(producer, 1)
            await drained(producer)

            assert server.notes[-2:] == [("clear", b""), ("store", KEY)]
            assert producer.stats.servers[0].resyncs == 3
    await server.kill()


@pytest.mark.parametrize("status", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED])
async def test_an_eviction_lost_on_a_connection_that_stays_does_not_end_delivery(
    status: grpc.StatusCode,
) -> None:
    """A proxy whose server is away says so to a call that is under way beside nothing else."""
    server = NotingServer()
    await server.start()
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        settings = producer_settings(source(engine), servers=server.target)
        async with running_producer(settings, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            await engine.publish(batch(map_store([5], T16)))
            await producer.until(lambda: producer.stats.servers[0].delivered_keys == 2)
            await producer.drained()
            server.event_status = status
            await engine.publish(batch(map_remove([5])))
            await producer.until(lambda: producer.stats.servers[0].failures >= 1)
            server.event_status = None
            await producer.drained()

            assert server.notes[-2:] == [("clear", b""), ("store", KEY)]
            assert producer.stats.servers[0].is_connected
    await server.kill()


async def test_a_server_that_loses_every_eviction_is_told_anew_ever_more_rarely() -> None:
    """It takes everything else, so each time a clear and all that is held would follow at once."""
    server = NotingServer()
    await server.start()
    pause_ns, losses = 40 * NS_PER_MS, 5
    loop = asyncio.get_running_loop()
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        settings = producer_settings(
            source(engine),
            servers=server.target,
            retry_initial_ns=pause_ns,
            retry_max_ns=3_600 * NS_PER_S,
        )
        async with running_producer(settings, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(batch(map_store([5], T16)))
            await producer.until(lambda: producer.stats.servers[0].delivered_keys == 1)
            server.refused_keys = {chain(T16, 16)[0]: grpc.StatusCode.UNAVAILABLE}
            began_s = loop.time()
            for count in range(1, losses + 1):
                await engine.publish(batch(map_remove([5])))
                await producer.until(
                    lambda count=count: producer.stats.servers[0].failures >= count
                )
                await producer.drained()
                await engine.publish(batch(map_store([5], T16)))
                await producer.until(
                    lambda count=count: producer.stats.servers[0].delivered_keys > count
                )
            took_ns = (loop.time() - began_s) * NS_PER_S

            assert took_ns >= sum(pause_ns / 2 * 2**loss for loss in range(losses))
            assert server.notes.count(("clear", b"")) == losses + 1
    await server.kill()


async def test_a_path_that_falls_silent_is_noticed_and_everything_sent_again() -> None:
    """Pings find the dead path; over the next one the server is told the whole truth."""
    client = replace(QUICK, keepalive_interval_ns=NS_PER_S, keepalive_timeout_ns=100 * NS_PER_MS)
    async with (
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as server,
        SilentProxy.before(server.grpc_target) as proxy,
    ):
        settings = producer_settings(source(engine), servers=proxy.target, client=client)
        async with running_producer(settings, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(B1)
            await engine.publish(batch(map_store([5], T16)))
            await until(producer, 2)
            await drained(producer)
            proxy.fall_silent()
            await engine.publish(B2)
            await engine.publish(batch(map_remove([5])))
            async with asyncio.timeout(LIMIT_S):
                await producer.until(lambda: not producer.stats.servers[0].is_connected)
            proxy._is_silent = False
            await drained(producer)

            assert matched(server, P2, replica_id=REPLICA) == 32
            assert matched(server, T16) == 0


async def test_too_much_that_is_pending_becomes_a_clear_and_what_is_held() -> None:
    """A burst with more keys than there is room for ends in the truth."""
    async with (
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as server,
    ):
        chosen = producer_settings(source(engine), servers=server.grpc_target)
        chosen = replace(chosen, outbox=replace(chosen.outbox, pending_keys_max=1_024))
        async with running_producer(chosen, Lines()) as producer:
            await producer.wait_synced()
            at_first = producer.stats.servers[0].resyncs
            await engine.subscribed.wait()
            kept, gone = list(range(4_000)), list(range(100_000, 140_000))
            await engine.publish(
                batch(
                    map_store(list(range(250)), kept),
                    map_store(list(range(100_000, 102_500)), gone),
                )
            )
            await engine.publish(batch(map_remove(list(range(102_499, 99_999, -1)))))
            await until(producer, 2)
            await drained(producer)

            assert matched(server, kept) == 4_000
            assert matched(server, gone) == 0
            assert server.plane.index.entries == 250
            assert producer.stats.servers[0].resyncs > at_first


async def test_many_evictions_become_a_clear_and_what_is_held() -> None:
    """A call per key is more than a clear and what is left."""
    server = NotingServer()
    await server.start()
    gone, kept = list(range(100, 140)), list(range(200, 203))
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        chosen = producer_settings(source(engine), servers=server.target, evictions_max=20)
        async with running_producer(chosen, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(
                batch(map_store(gone, list(range(640))), map_store(kept, list(range(9_000, 9_048))))
            )
            await producer.until(lambda: producer.stats.servers[0].delivered_keys == 43)
            before = len(server.notes)
            await engine.publish(batch(map_remove(gone[::-1])))
            await producer.until(lambda: producer.stats.servers[0].delivered_keys == 46)
            await producer.drained()
            after = server.notes[before:]
    await server.kill()

    left = chain(list(range(9_000, 9_048)), 16)
    assert after == [("clear", b""), *(("store", key) for key in left)]


async def test_a_clear_in_the_engine_wins_over_what_is_under_way() -> None:
    """Stores and evictions from before the clear leave nothing behind."""
    async with (
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as server,
    ):
        chosen = producer_settings(source(engine), servers=server.grpc_target)
        async with running_producer(chosen, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            for _ in range(50):
                await engine.publish(batch(map_store([1], P1), map_store([5], T16)))
                await engine.publish(batch(map_remove([1])))
                await engine.publish(batch(map_clear()))
            await engine.publish(B1)
            await until(producer, 151)
            await drained(producer)

            assert matched(server, P1) == 16
            assert matched(server, T16) == 0
