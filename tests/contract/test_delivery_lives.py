"""A server whose every answer may be a refusal, a loss or nonsense ends up with what is held.

Such answers come before a change is made there, or after it; the connection stays all the while, as
that to a proxy does.
"""

import asyncio
from collections.abc import AsyncIterator
from random import Random

import grpc
import pytest
from engine_payloads import batch, map_clear, map_remove, map_store
from engine_sockets import engine_sockets
from followed import LIMIT_S, Lines, producer_settings, source
from scripted_cache_server import NO_MESSAGE, Acked, Context, ScriptedServer

from inferencecache.app.producer import running_producer
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

ACCEPTED = pb.Ack(accepted=True)
PROMPTS = 30
STATUSES = [
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.UNKNOWN,
]


class FaultyServer(ScriptedServer):
    """Keeps what it is told of one replica, and answers as chance will have it.

    Attributes:
        held: The keys that it has been told of.
        faults_share: How many of the answers are none that a producer wants.
    """

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self.held: set[bytes] = set()
        self.faults_share = 0.0
        self.on_report = self._take
        self._chance = chance

    async def _take(self, updates: AsyncIterator[pb.CacheStateUpdate], context: Context) -> Acked:
        async for update in updates:
            self.held.update(key for prefix in update.prefixes for key in prefix.block_hashes)
            if (fault := await self._fault(context)) is not None:
                return fault
        return await self._fault(context) or ACCEPTED

    async def publish(self, event: pb.CacheEvent, context: Context) -> Acked:
        """Forget a key, or all."""
        if (fault := await self._fault(context)) is not None:
            return fault
        if event.type == pb.CacheEvent.ALL_CLEARED:
            self.held.clear()
        self.held.discard(event.prefix_hash)
        return await self._fault(context) or ACCEPTED

    async def _fault(self, context: Context) -> Acked | None:
        if self._chance.random() >= self.faults_share:
            return None
        if self._chance.random() < 0.3:
            return self._chance.choice([NO_MESSAGE, pb.Ack(accepted=False)])
        await context.abort(self._chance.choice(STATUSES), "scripted")
        raise AssertionError("abort raises")


def drawn_batches(chance: Random) -> list[bytes]:
    """Return what an engine publishes: blocks of few prompts, again and again."""

    def event() -> bytes:
        prompt, kind = chance.randrange(PROMPTS), chance.random()
        if kind < 0.5:
            return map_store([prompt], [prompt] * 16)
        return map_remove([prompt]) if kind < 0.98 else map_clear()

    return [batch(*(event() for _ in range(chance.randrange(1, 6)))) for _ in range(40)]


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_a_server_answers_it_ends_up_with_what_is_held(seed: int) -> None:
    """Once it answers as it should, and without another change."""
    chance = Random(seed)
    batches = drawn_batches(chance)
    limits = {
        "evictions_in_flight_max": chance.choice([1, 32]),
        "evictions_max": chance.choice([4, 16_384]),
        "round_keys_max": chance.choice([2, 8_192]),
    }
    server = FaultyServer(chance)
    await server.start()
    async with asyncio.timeout(2 * LIMIT_S), engine_sockets() as engine:
        settings = producer_settings(source(engine), servers=server.target, **limits)
        async with running_producer(settings, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            server.faults_share = chance.choice([0.1, 0.3])
            for number, published in enumerate(batches, start=1):
                await engine.publish(published)
                await producer.until(lambda n=number: producer.stats.sources[0].expected == n)
            server.faults_share = 0.0
            await producer.drained()

            assert server.held == {key.to_bytes(8, "big") for _, _, key, _ in producer.held_keys()}
    await server.kill()
