"""A producer on real sockets under much at once."""

import asyncio
from time import perf_counter

import pytest
from engine_payloads import batch, map_store
from engine_sockets import engine_sockets
from followed import LIMIT_S, MODEL, SCHEME, TENANT, following, rig

from inferencecache.types import Scope

BATCHES = 10_000
SECONDS_MAX = 5.0


def one_block(number: int) -> bytes:
    """Return a batch with a prompt of its own."""
    return batch(map_store([number + 1], list(range(number, number + 16))))


@pytest.mark.long
async def test_ten_thousand_batches_are_replayed_while_live_ones_keep_coming() -> None:
    """Within five seconds everything is in the index, once."""
    async with engine_sockets() as engine:
        for number in range(BATCHES):
            await engine.publish(one_block(number))
        started = perf_counter()
        async with following(engine) as found:
            await engine.requested.wait()
            for number in range(BATCHES, BATCHES + 1_000):
                await engine.publish(one_block(number))
                await asyncio.sleep(0)
            await found.settled(BATCHES + 1_000)
            taken_s = perf_counter() - started

            (source,) = found.producer.stats.sources
            assert found.server.plane.index.entries == BATCHES + 1_000
            assert source.expected == source.applied == BATCHES + 1_000
            assert (source.final_gaps, source.duplicates, source.restarts) == (0, 0, 0)
            assert not source.is_incomplete
        assert taken_s < SECONDS_MAX


async def test_a_thousand_batches_are_replayed_while_live_ones_keep_coming() -> None:
    """The replay and the live stream meet without a gap and without a double."""
    async with engine_sockets() as engine:
        for number in range(1_000):
            await engine.publish(one_block(number))
        async with following(engine) as found:
            await engine.requested.wait()
            for number in range(1_000, 1_200):
                await engine.publish(one_block(number))
                await asyncio.sleep(0)
            await found.settled(1_200)

            assert found.server.plane.index.entries == 1_200
            assert found.producer.stats.sources[0].duplicates == 0
            assert found.producer.stats.sources[0].final_gaps == 0


async def test_ten_thousand_hashes_of_one_batch_are_delivered() -> None:
    """One huge batch goes out in messages that the server takes."""
    events = [
        map_store(list(range(first + 1, first + 501)), list(range(first, first + 8_000)))
        for first in range(0, 200_000, 10_000)
    ]
    async with rig() as found:
        await found.synced()
        await found.engine.publish(batch(*events))
        async with asyncio.timeout(LIMIT_S):
            await found.settled(1)

        assert found.server.plane.index.entries == 10_000
        assert found.server.plane.index.serving_count(Scope(TENANT, MODEL, SCHEME)) == 1
