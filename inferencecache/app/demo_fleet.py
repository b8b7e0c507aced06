"""The parts of a demo, running: a server, fake engines, and a subscriber for each."""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from inferencecache.app.fake_engine import FakeEngine, running_fake_engine
from inferencecache.app.producer import Producer, running_producer
from inferencecache.app.server import Server, running_server
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.delivery import DeliverySettings
from inferencecache.settings.demo import DemoSettings
from inferencecache.settings.fake_engine import FakeEngineSettings
from inferencecache.settings.producer import LoadSettings, OutboxSettings
from inferencecache.settings.subscribe import EngineSettings, ProducerSettings, SourceSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport.structured_log import LOGGER_NAME, StructuredLog
from inferencecache.types import PartitionKey

TENANT: Final = "demo"
MODEL: Final = "demo-model"
SCHEME: Final = "vllm"
LAYOUTS: Final = ("vllm-0.10.2", "vllm-0.24", "vllm-0.33")
"""One engine of each: old arrays, maps, and maps with wide headers."""

_LOOPBACK: Final = "tcp://127.0.0.1:0"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoFleet:
    """What runs.

    Attributes:
        server: The server.
        engines: The engines.
        producers: Their subscribers, in the same order.
    """

    server: Server
    engines: Sequence[FakeEngine]
    producers: Sequence[Producer]

    @property
    def replica_ids(self) -> list[str]:
        """The engines' names in the index."""
        return [f"engine-{number}" for number in range(len(self.engines))]

    async def settled(self) -> None:
        """Wait until the server knows everything that the engines have published."""
        for engine, producer in zip(self.engines, self.producers, strict=True):
            wanted = engine.player.streams[0].next_number
            await producer.until(_has_taken(producer, wanted))
            await producer.wait_synced()
            await producer.drained()

    def progress(self) -> tuple[int, ...]:
        """Return how far every subscriber and the server have come."""
        counts: list[int] = []
        for producer in self.producers:
            source, told = producer.stats.sources[0], producer.stats.servers[0]
            counts += [source.applied, told.delivered_keys, told.evicted_keys, told.resyncs]
        return tuple(counts)

    def differences(self) -> int:
        """Return how many keys the index and the engines disagree about."""
        index = self.server.plane.index
        partition = PartitionKey(TENANT, MODEL, SCHEME, "")
        missing = expected = 0
        for replica_id, engine in zip(self.replica_ids, self.engines, strict=True):
            for key in engine.expected():
                expected += 1
                holders = index.match_exact(partition, key.key.to_bytes(8, "big"), 0)
                missing += all(holder[0] != replica_id for holder in holders)
        return missing + (index.entries - (expected - missing))


@asynccontextmanager
async def running_fleet(settings: DemoSettings) -> AsyncIterator[DemoFleet]:
    """Run everything for the length of a ``with`` block, every subscriber synced."""
    logger = logging.getLogger(f"{LOGGER_NAME}.demo")
    logger.setLevel(logging.ERROR)
    log = StructuredLog(logger)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running_server(throwaway_server_settings(), log))
        engines = [
            await stack.enter_async_context(running_fake_engine(_engine(layout, settings)))
            for layout in LAYOUTS
        ]
        producers = [
            await stack.enter_async_context(
                running_producer(_producer(engine, number, server.grpc_target), log)
            )
            for number, engine in enumerate(engines)
        ]
        for engine, producer in zip(engines, producers, strict=True):
            await engine.wait_subscribed()
            await producer.wait_synced()
        yield DemoFleet(server=server, engines=engines, producers=producers)


def _has_taken(producer: Producer, wanted: int) -> Callable[[], bool]:
    return lambda: (producer.stats.sources[0].expected or 0) == wanted


def _engine(layout: str, settings: DemoSettings) -> FakeEngineSettings:
    return FakeEngineSettings(
        layout=layout,
        bind_endpoint=_LOOPBACK,
        replay_endpoint=_LOOPBACK,
        metrics_address="127.0.0.1:0",
        model_name=MODEL,
        cache_blocks=settings.cache_blocks,
    )


def _producer(engine: FakeEngine, number: int, target: str) -> ProducerSettings:
    source = SourceSettings(
        engine=EngineSettings(
            endpoint=engine.endpoints[0],
            replay_endpoint=engine.replay_endpoints[0],
            replica_id=f"engine-{number}",
            tenant_id=TENANT,
            model_id=MODEL,
            hash_scheme=SCHEME,
            metrics_url=engine.metrics_url,
            stats_interval_ns=NS_PER_S,
        ),
        load=LoadSettings(),
    )
    return ProducerSettings(
        sources=(source,),
        outbox=OutboxSettings(window_ns=20 * NS_PER_MS),
        delivery=DeliverySettings(servers=target),
    )
