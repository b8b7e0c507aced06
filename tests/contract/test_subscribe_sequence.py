"""A producer on real sockets: order, gaps, replays and restarts of one engine."""

import asyncio

import pytest
from engine_payloads import T16, batch, map_clear, map_remove, map_store
from engine_sockets import engine_sockets
from followed import LIMIT_S, REPLICA, following, held, rig

from inferencecache.clock import NS_PER_MS
from inferencecache.settings.producer import SequenceSettings
from inferencecache.types import CacheTier

P1 = list(range(1, 17))
P2 = list(range(1, 33))
P3 = list(range(1, 49))
B1 = batch(map_store([1], P1))
B2 = batch(map_store([2], P2[16:], parent=1))
B3 = batch(map_store([3], P3[32:], parent=2))


async def test_blocks_of_live_batches_are_found_by_lookups() -> None:
    """A root and its child in two batches become one chain, at T1."""
    async with rig() as found:
        await found.synced()
        await found.engine.publish(B1)
        await found.engine.publish(B2)
        await found.settled(2)

        assert held(found.server, P3) == (32, CacheTier.T1)


async def test_a_late_producer_learns_the_past_from_an_idle_engine() -> None:
    """What was published before anybody listened is replayed, without a live message."""
    async with engine_sockets() as engine:
        await engine.publish(B1)
        await engine.publish(B2)
        async with following(engine) as found:
            await found.settled(2)

            assert found.matched(P2) == 32
            assert engine.requests == [0]


@pytest.mark.parametrize("new_shape", [True, False], ids=["with topic", "without topic"])
async def test_a_gap_is_filled_by_a_replay(*, new_shape: bool) -> None:
    """A lost batch is asked for by its number, in both shapes of replay, and applied in order."""
    async with rig() as found:
        found.engine.new_shape = new_shape
        await found.synced()
        await found.engine.publish(B1)
        await found.engine.publish(B2, lose=True)
        await found.engine.publish(B3)
        await found.settled(3)

        assert found.matched(P3) == 48
        assert found.engine.requests == [0, 1]
        assert found.producer.stats.sources[0].gaps == 1
        told = [event for event in found.log.events if event in {"engine_behind", "engine_synced"}]
        assert told == ["engine_synced", "engine_behind", "engine_synced"]


async def test_a_burnt_number_is_given_up_and_the_stream_goes_on() -> None:
    """A number that no replay has costs a bounded number of requests and one final gap."""
    async with rig() as found:
        await found.synced()
        await found.engine.publish(B1)
        await found.engine.publish(b"", burn=True)
        await found.engine.publish(B2)
        await found.settled(3)

        assert found.matched(P2) == 32
        assert found.engine.requests == [0, 1, 1, 1]
        assert found.producer.stats.sources[0].final_gaps == 1
        assert "events_lost" in found.log.events


async def test_a_replay_with_a_hole_is_asked_for_again() -> None:
    """What one replay leaves out, the next one brings."""
    async with engine_sockets() as engine:
        for payload in (B1, B2, B3):
            await engine.publish(payload)
        engine.withheld = [{1}]
        async with following(engine) as found:
            await found.settled(3)

            assert found.matched(P3) == 48
            assert engine.requests == [0, 1]


async def test_a_replay_without_an_end_does_not_hold_up_the_stream() -> None:
    """Silence ends a replay whose end mark never comes; live batches were kept meanwhile."""
    async with engine_sockets() as engine:
        engine.has_end = False
        await engine.publish(B1)
        quick = SequenceSettings(replay_idle_ns=300 * NS_PER_MS)
        async with following(engine, sequence=quick) as found:
            await engine.requested.wait()
            await engine.publish(B2)
            await found.settled(2)

            assert found.matched(P2) == 32


async def test_without_a_replay_socket_the_stream_goes_on_behind_a_gap() -> None:
    """A gap is final at once; blocks whose parents are unknown are not indexed."""
    async with rig(replay=False) as found:
        await found.synced()
        await found.engine.publish(B1)
        await found.engine.publish(B2, lose=True)
        await found.engine.publish(B3)
        await found.settled(3)

        assert found.matched(P3) == 16
        assert found.producer.stats.sources[0].final_gaps == 1


async def test_a_duplicate_is_not_counted_as_a_second_copy() -> None:
    """A number seen before is dropped, so one removal is enough."""
    async with rig() as found:
        await found.synced()
        number = await found.engine.publish(B1)
        await found.engine.send([b"kv-events", number.to_bytes(8, "big"), B1])
        await found.engine.publish(batch(map_remove([1])))
        await found.settled(2)

        assert found.matched(P1) == 0
        assert found.producer.stats.sources[0].duplicates == 1


async def test_a_restarted_engine_is_cleared_and_followed_anew() -> None:
    """After a restart on the same ports only what the new life announced is held."""
    async with rig() as found:
        await found.synced()
        for payload in (B1, B2):
            await found.engine.publish(payload)
        await found.settled(2)
        await found.engine.stop()
        await found.until(lambda: not found.producer.is_synced)
        found.engine.start()
        await found.engine.publish(batch(map_store([9], T16), ts=1_700_000_500.0))
        await found.until(lambda: found.producer.stats.sources[0].restarts == 1)
        await found.settled(1)

        assert found.matched(P2) == 0
        assert found.matched(T16) == 16


async def test_a_restart_is_seen_without_a_replay_socket_too() -> None:
    """A number below the expected one with a newer time clears what the old life held."""
    async with rig(replay=False) as found:
        await found.synced()
        await found.engine.publish(B1)
        await found.engine.publish(B2)
        await found.settled(2)
        payload = batch(map_store([9], T16), ts=1_700_000_500.0)
        await found.engine.send([b"kv-events", bytes(8), payload])
        await found.settled(1)

        assert found.matched(P2) == 0
        assert found.matched(T16) == 16


async def test_an_engine_that_comes_back_without_proof_is_in_doubt() -> None:
    """Its silence keeps alive nothing that an earlier life may have announced."""
    async with rig(replay=False) as found:
        await found.synced()
        await found.engine.publish(B1)
        await found.settled(1)
        await found.engine.stop()
        found.engine.start()
        await found.until(lambda: "engine_unproven" in found.log.events)

        assert found.log.events.count("engine_unproven") == 1
        assert "events_lost" not in found.log.events


async def test_another_topic_brings_nothing_and_does_no_harm() -> None:
    """Messages of another topic are not for us; the replay still is."""
    async with engine_sockets("other") as engine, following(engine, replay=False) as found:
        await found.synced()
        await engine.publish(B1)
        await engine.send([b"kv-events", (1).to_bytes(8, "big"), batch(map_store([5], T16))])
        await found.settled(2)

        assert found.matched(P1) == 0
        assert found.matched(T16) == 16


async def test_a_clear_between_stores_leaves_the_later_ones() -> None:
    """Everything before the engine's clear is gone, what follows it stays."""
    async with rig() as found:
        await found.synced()
        await found.engine.publish(batch(map_store([1], P1), map_clear(), map_store([5], T16)))
        await found.settled(1)

        assert found.matched(P1) == 0
        assert found.matched(T16) == 16


PARTS = {
    "a topic alone": [b"kv-events"],
    "no payload": [b"kv-events", bytes(8)],
    "five frames": [b"kv-events", b"", bytes(8), B1, b""],
    "a number of five bytes": [b"kv-events", b"short", B1],
}
PAYLOADS = {
    "a cut payload": B1[:-20],
    "nothing": b"",
    "a list as long as 100 MB": b"\xdd\x06\x00\x00\x00",
    "a batch of 100 M events": b"\x93\xcb" + bytes(8) + b"\xdd\x05\xf5\xe1\x00",
    "a text as long as 100 MB": b"\xdb\x06\x00\x00\x00" + bytes(50),
}


@pytest.mark.parametrize("name", PARTS)
async def test_messages_of_other_parts_cost_themselves_only(name: str) -> None:
    """Said and counted, and the stream goes on."""
    async with rig(replay=False, topic="") as found:
        await found.synced()
        await found.engine.send(PARTS[name])
        await found.engine.publish(B1)
        await found.settled(1)

        assert found.matched(P1) == 16
    assert found.log.fields_of("messages_unreadable") == [{"source": REPLICA, "cause": "frames"}]


@pytest.mark.parametrize("name", PAYLOADS)
async def test_unreadable_payloads_cost_themselves_only(name: str) -> None:
    """Said and counted, and the stream goes on."""
    async with rig(replay=False) as found:
        await found.synced()
        await found.engine.publish(PAYLOADS[name])
        await found.engine.publish(B1)
        await found.settled(2)

        assert found.matched(P1) == 16
    assert found.log.fields_of("messages_unreadable") == [{"source": REPLICA, "cause": "envelope"}]


async def test_a_producer_that_starts_before_its_engine_waits_for_it() -> None:
    """Neither order of starting matters."""
    async with engine_sockets() as engine:
        await engine.stop()
        async with following(engine) as found:
            assert not found.producer.is_synced
            engine.start()
            async with asyncio.timeout(LIMIT_S):
                await found.producer.wait_synced()
                await engine.subscribed.wait()
            await engine.publish(B1)
            await found.settled(1)

            assert found.matched(P1) == 16
