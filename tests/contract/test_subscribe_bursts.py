"""A producer on real sockets under much at once."""

import asyncio
from time import process_time

import pytest
from engine_payloads import batch, map_store
from engine_sockets import engine_sockets
from followed import LIMIT_S, MODEL, SCHEME, TENANT, following, rig

from inferencecache.types import Scope

BATCHES = 10_000
CPU_US_MAX = 1_000
"""What a batch may cost, from the engine's socket to the index: engine, subscriber and server.

Processor time, for other processes cannot change it; how long it takes is in the benchmarks. Work
that grows with the square of the batches would take ten times as much.
"""


def one_block(number: int) -> bytes:
    """Return a batch with a prompt of its own."""
    return batch(map_store([number + 1], list(range(number, number + 16))))


@pytest.mark.long
async def test_ten_thousand_batches_are_replayed_while_live_ones_keep_coming() -> None:
    """Everything gets into the index once, in the time that it takes ten times fewer."""
    async with engine_sockets() as engine:
        for number in range(BATCHES):
            await engine.publish(one_block(number))
        started = process_time()
        async with following(engine) as found:
            await engine.requested.wait()
            for number in range(BATCHES, BATCHES + 1_000):
                await engine.publish(one_block(number))
                await asyncio.sleep(0)
            await found.settled(BATCHES + 1_000)
            taken_s = process_time() - started

            (source,) = found.producer.stats.sources
            assert found.server.plane.index.entries == BATCHES + 1_000
            assert source.expected == source.applied == BATCHES + 1_000
            assert (source.final_gaps, source.duplicates, source.restarts) == (0, 0, 0)
            assert not source.is_incomplete
        assert taken_s * 1e6 / (BATCHES + 1_000) < CPU_US_MAX


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
