"""A fake engine, a producer that follows it, and a server: what the server's index holds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from followed import LIMIT_S, MODEL, PATIENT, REPLICA, TENANT, Lines, producer_settings

from inferencecache.app.fake_engine import FakeEngine
from inferencecache.app.producer import Producer, running_producer
from inferencecache.app.server import Server, running_server
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.producer import MapperSettings
from inferencecache.settings.subscribe import EngineSettings, SourceSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.simulation import Restart, Step
from inferencecache.types import CacheTier, PartitionKey

Held = set[tuple[str, int, int, str]]


class EngineRig:
    """All three."""

    def __init__(self, engine: FakeEngine, producer: Producer, server: Server) -> None:
        self.engine = engine
        self.producer = producer
        self.server = server
        self._restarts = 0
        self.scheme = "sglang" if engine.layout.is_sglang else "vllm"

    async def play(self, step: Step) -> None:
        """Do a step; before a restart the producer has seen all of the life that ends."""
        if isinstance(step, Restart):
            await self.settled()
            self._restarts += 1
        await self.engine.play(step)

    async def settled(self) -> None:
        """Wait until everything published was taken in and delivered, in the present life."""
        wanted = [stream.next_number for stream in self.engine.player.streams]
        async with asyncio.timeout(LIMIT_S):
            await self.producer.until(
                lambda: (
                    [one.expected or 0 for one in self.producer.stats.sources] == wanted
                    and sum(one.restarts for one in self.producer.stats.sources) == self._restarts
                )
            )
            await self.producer.wait_synced()
            await self.producer.drained()

    def expected(self) -> Held:
        """Return what the index must hold: adapter, key, tokens and tier."""
        return {
            (key.adapter_id, key.key, key.token_count, key.tier.name)
            for key in self.engine.expected()
        }

    def held(self) -> Held:
        """Return what the index holds of the keys that it must hold."""
        found: Held = set()
        for key in self.engine.expected():
            partition = PartitionKey(TENANT, MODEL, self.scheme, key.adapter_id)
            hash_bytes = key.key.to_bytes(8, "big")
            for name, tokens, _, tier, _ in self.server.plane.index.match_exact(
                partition, hash_bytes, 1
            ):
                assert name == REPLICA
                found.add((key.adapter_id, key.key, tokens, CacheTier(tier).name))
        return found

    @property
    def entries(self) -> int:
        """Entries of the index, whatever they are."""
        return self.server.plane.index.entries


@asynccontextmanager
async def producing(
    engine: FakeEngine, *, server_block_size: int = 16, **mapper: object
) -> AsyncIterator[EngineRig]:
    """Run producer and server behind *engine*; it is subscribed to when the block begins."""
    lookup = LookupSettings(block_size_tokens=server_block_size)
    async with running_server(throwaway_server_settings(lookup=lookup), Lines()) as server:
        settings = producer_settings(_source(engine, **mapper), servers=server.grpc_target)
        async with running_producer(settings, Lines()) as producer, asyncio.timeout(LIMIT_S):
            await engine.wait_subscribed()
            await producer.wait_synced()
            yield EngineRig(engine, producer, server)


def _source(engine: FakeEngine, **mapper: object) -> SourceSettings:
    return SourceSettings(
        engine=EngineSettings(
            endpoint=engine.endpoints[0],
            replay_endpoint=(engine.replay_endpoints or [""])[0],
            topic=engine.plan.topic,
            ranks_total=len(engine.endpoints),
            replica_id=REPLICA,
            tenant_id=TENANT,
            model_id=MODEL,
            hash_scheme="sglang" if engine.layout.is_sglang else "vllm",
            metrics_url="",
        ),
        mapper=MapperSettings(**mapper),  # type: ignore[arg-type] # a test's shorthand
        sequence=PATIENT,
    )
