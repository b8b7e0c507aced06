"""What waits to be evicted when stores and clears come, on a real connection to a scripted server.

The server answers no eviction until it is told to, and one call is made at a time, so that what is
under way and what waits is known at every step.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import grpc
import pytest
from followed import LIMIT_S, QUICK
from noting_server import NotingServer

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.delivery import DeliverySettings
from inferencecache.transport.client_channel import open_async_channel
from inferencecache.transport.client_values import Removal, ReplicaRef
from inferencecache.transport.delivery_evictions import EvictionPool

ONE, OTHER = ReplicaRef("t", "m", "one"), ReplicaRef("t", "m", "other")
A, B, C, D = (bytes([letter]) * 8 for letter in b"abcd")
SETTINGS = DeliverySettings(
    evictions_in_flight_max=1, retry_initial_ns=NS_PER_MS, retry_max_ns=2 * NS_PER_MS
)


@asynccontextmanager
async def pool(
    settings: DeliverySettings = SETTINGS,
) -> AsyncIterator[tuple[EvictionPool, NotingServer]]:
    """Run a server that holds back its answers, and a pool connected to it."""
    server = NotingServer()
    server.may_evict.clear()
    await server.start()
    channel = open_async_channel(server.target, QUICK, None)
    made = EvictionPool(channel, server.target, QUICK, settings)
    try:
        async with asyncio.timeout(LIMIT_S):
            yield made, server
    finally:
        made.drop()
        await channel.close()
        await server.kill()


def evicted(server: NotingServer) -> list[bytes]:
    """Return the evicted keys in order."""
    return [key for kind, key in server.notes if kind == "evict"]


async def test_a_store_makes_a_waiting_eviction_of_its_key_needless() -> None:
    """Only the very same entry counts: neither another adapter's nor another replica's."""
    async with pool() as (evictions, server):
        evictions.add([Removal(ONE, A), Removal(ONE, B), Removal(ONE, C, "x"), Removal(OTHER, D)])
        await server.evicting.wait()
        evictions.withdraw([Removal(ONE, B), Removal(ONE, C), Removal(ONE, D), Removal(ONE, A)])
        server.may_evict.set()
        await evictions.until_at_most(0)

        assert evicted(server) == [A, C, D]
        assert (evictions.withdrawn, evictions.acknowledged, evictions.size) == (1, 3, 0)


async def test_what_a_store_must_not_overtake_is_sent_next() -> None:
    """The store of another partition waits for its key, not for all that waits before it."""
    async with pool() as (evictions, server):
        evictions.add([Removal(ONE, key) for key in (A, B, C, D)])
        await server.evicting.wait()
        waiting = asyncio.create_task(evictions.until_gone({D}))
        waiting.add_done_callback(lambda _: server.notes.append(("free", D)))
        await asyncio.sleep(0)
        server.may_evict.set()
        await waiting
        await evictions.until_at_most(0)

        assert evicted(server) == [A, D, B, C]
        assert server.notes.index(("free", D)) <= server.notes.index(("evict", C))


async def test_a_key_that_is_not_under_way_is_not_waited_for() -> None:
    """With everything held back, a store of another key goes at once."""
    async with pool() as (evictions, server):
        evictions.add([Removal(ONE, A), Removal(ONE, B)])
        await server.evicting.wait()
        await evictions.until_gone({C, D})

        assert server.notes == []


async def test_a_clear_makes_all_that_waits_for_its_replica_needless() -> None:
    """Another replica's evictions stay."""
    async with pool() as (evictions, server):
        evictions.add([Removal(ONE, A), Removal(ONE, B), Removal(OTHER, C), Removal(ONE, D)])
        await server.evicting.wait()
        evictions.withdraw_all(ONE)
        server.may_evict.set()
        await evictions.until_at_most(0)

        assert evicted(server) == [A, C]
        assert evictions.withdrawn == 2


async def test_what_waits_twice_is_sent_once() -> None:
    """A key that was stored and evicted again while the server was busy costs one call."""
    async with pool() as (evictions, server):
        evictions.add([Removal(ONE, A), Removal(ONE, B), Removal(ONE, B)])
        await server.evicting.wait()
        evictions.add([Removal(ONE, A), Removal(ONE, B)])
        server.may_evict.set()
        await evictions.until_at_most(0)

        assert evicted(server) == [A, B, A]


@pytest.mark.parametrize("status", [grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE])
async def test_an_eviction_refused_for_good_is_given_up(status: grpc.StatusCode) -> None:
    """It is counted, holds up no other, and no store of its key either."""
    async with pool() as (evictions, server):
        statuses: list[str] = []
        evictions.failed = lambda error: statuses.append(error.status)
        server.may_evict.set()
        server.refused_keys = {A: status, C: status}
        evictions.add([Removal(ONE, A), Removal(ONE, B), Removal(ONE, C), Removal(ONE, D)])
        await evictions.until_gone({A})
        await evictions.until_at_most(0)

        assert evicted(server) == [B, D]
        assert (evictions.refused, evictions.acknowledged) == (2, 2)
        assert statuses == [status.name] * 2


async def test_evictions_refused_for_good_are_not_sent_in_a_flood() -> None:
    """Each is told of, so a server that refuses all of them would get no end of lines written."""
    unhurried = replace(SETTINGS, retry_initial_ns=3_600 * NS_PER_S, retry_max_ns=3_600 * NS_PER_S)
    async with pool(unhurried) as (evictions, server):
        refused = asyncio.Event()
        evictions.changed = refused.set
        server.may_evict.set()
        server.refused_keys = dict.fromkeys((A, B), grpc.StatusCode.INVALID_ARGUMENT)
        evictions.add([Removal(ONE, A), Removal(ONE, B)])
        await refused.wait()

        assert (evictions.refused, evictions.size) == (1, 1)
        assert evictions.busiest() == ONE


@pytest.mark.parametrize(
    "status",
    [
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.FAILED_PRECONDITION,
    ],
)
async def test_a_refused_eviction_is_the_next_one_again(status: grpc.StatusCode) -> None:
    """It keeps its place, also when the same one waits behind it by then.

    A proxy in between may answer like that for a moment, whatever the eviction says.
    """
    async with pool() as (evictions, server):
        failed = asyncio.Event()
        evictions.failed = lambda _: failed.set()
        server.may_evict.set()
        server.event_status = status
        evictions.add([Removal(ONE, A), Removal(ONE, B)])
        await failed.wait()
        evictions.add([Removal(ONE, A)])
        server.event_status = None
        await evictions.until_at_most(0)

        assert evicted(server) == [A, B]
        assert evictions.acknowledged == 2
