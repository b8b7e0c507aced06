"""A replay whose reports take the whole way: engine, ZMQ, producer, server.

Every simulated replica publishes its stores and evictions as an engine of one release would, with
tokens and labels of its own; one producer follows them all. Lookups go as in any other replay.

Rules of this file
    1. A request's events have been taken in by the producer and acknowledged by the server before
       the next lookup, so answers depend on the trace and the seed alone.
    2. Labels are never keys: only tokens can lead the producer to the keys of the lookups.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from inferencecache.app.producer import Producer, running_producer
from inferencecache.app.replay_input import ReplayInput
from inferencecache.app.replay_plane import HASH_SCHEME, ReplayPlane, ServerLostError
from inferencecache.app.replay_server import replay_log
from inferencecache.clock import NS_PER_MS, NS_PER_S, Clock
from inferencecache.errors import ConfigError
from inferencecache.settings.delivery import DeliverySettings
from inferencecache.settings.producer import MapperSettings, OutboxSettings
from inferencecache.settings.replay import ReplaySettings
from inferencecache.settings.subscribe import EngineSettings, ProducerSettings, SourceSettings
from inferencecache.simulation import (
    TRACE_BLOCK_TOKENS,
    Answer,
    CacheOutcome,
    ClearedBlocks,
    EngineEvent,
    EngineStream,
    Prompt,
    PublisherPlan,
    RemovedBlocks,
    Served,
    StoredBlocks,
    StreamRules,
    layout_of,
)
from inferencecache.transport.fake_engine_sockets import FakeEngineSockets

REPLICAS_MAX: Final = 64
"""Most replicas; each has ZMQ sockets and a thread of its own."""

_TOPIC: Final = "kv-events"
_LOOPBACK: Final = "tcp://127.0.0.1:0"
_LABEL_MASK: Final = 2**64 - 1


class ZmqReplayPlane:
    """Reports through engines and a producer; looks up like any gateway.

    Args:
        gateway: Does the lookups.
        engines: What each replica publishes through.
        producer: Follows the engines.
        trace: The prompts, with the content behind their keys.
        settings: Time limit.
    """

    def __init__(
        self,
        gateway: ReplayPlane,
        engines: list["ReplicaEngine"],
        producer: Producer,
        trace: ReplayInput,
        settings: ReplaySettings,
    ) -> None:
        self._gateway = gateway
        self._engines = engines
        self._producer = producer
        self._trace = trace
        self._deadline_s = settings.deadline_ns / NS_PER_S
        self.replica_ids = gateway.replica_ids

    async def start(self) -> None:
        """Wait until the producer follows every engine, and tell that all are empty.

        Raises:
            ServerLostError: The server does not answer.
        """
        try:
            async with asyncio.timeout(self._deadline_s):
                for engine in self._engines:
                    await engine.sockets.wait_subscribed(0)  # what is sent earlier is lost
                await self._producer.wait_synced()
        except TimeoutError:
            raise self._lost() from None
        for replica in range(len(self._engines)):
            await self._publish(replica, [ClearedBlocks()])

    async def look_up(self, prompt: Prompt) -> Answer:
        """Ask where *prompt* is warm.

        Raises:
            ServerLostError: The server does not answer.
        """
        return await self._gateway.look_up(prompt)

    async def report(self, served: Served) -> None:
        """Publish what serving a prompt changed; on return the server has applied it.

        Raises:
            ServerLostError: The server does not acknowledge.
        """
        events = self._events_of(served.outcome)
        if events:
            await self._publish(served.replica, events)

    def _events_of(self, outcome: CacheOutcome) -> list[EngineEvent]:
        """Return what an engine says: one removal per block, then the store."""
        events: list[EngineEvent] = [
            RemovedBlocks(labels=[label_of(key)]) for key in outcome.evicted
        ]
        if outcome.stored:
            stored = [self._trace.blocks[key] for key in outcome.stored]
            parent = stored[0].parent
            events.append(
                StoredBlocks(
                    labels=[label_of(key) for key in outcome.stored],
                    parent=None if parent is None else label_of(parent),
                    tokens=[one.content for one in stored for _ in range(TRACE_BLOCK_TOKENS)],
                    block_size_tokens=TRACE_BLOCK_TOKENS,
                )
            )
        return events

    async def _publish(self, replica: int, events: list[EngineEvent]) -> None:
        """Publish and wait until the server knows."""
        number = await self._engines[replica].publish(events)
        try:
            async with asyncio.timeout(self._deadline_s):
                await self._producer.until(
                    lambda: (self._producer.stats.sources[replica].expected or 0) > number
                )
                await self._producer.drained()
        except TimeoutError:
            raise self._lost() from None

    def _lost(self) -> ServerLostError:
        server = self._producer.stats.servers[0].target
        return ServerLostError(
            f"cache server at {server} did not acknowledge within {self._deadline_s:g} s"
        )


class ReplicaEngine:
    """The publisher of one replica.

    Args:
        layout: Engine and release to write like.
        clock: Stamps messages.

    Raises:
        ConfigError: The release is unknown.
    """

    def __init__(self, layout: str, clock: Clock) -> None:
        row = layout_of(layout)
        self._clock = clock
        self._stream = EngineStream(StreamRules(layout=row, hash_form=row.hash_form, topic=_TOPIC))
        plan = PublisherPlan(endpoint=_LOOPBACK, replay_endpoint=_LOOPBACK, topic=_TOPIC)
        self.sockets = FakeEngineSockets(plan, [self._stream])

    async def publish(self, events: list[EngineEvent]) -> int:
        """Publish one message and return its number."""
        message = self._stream.publish(events, self._clock.now_ns() / NS_PER_S)
        await self.sockets.send(0, message)
        return message.number

    def source(self, replica_id: str, settings: ReplaySettings) -> SourceSettings:
        """Return how a producer follows this engine."""
        mapper = MapperSettings()
        return SourceSettings(
            engine=EngineSettings(
                endpoint=self.sockets.endpoints[0],
                replay_endpoint=self.sockets.replay_endpoints[0],
                topic=_TOPIC,
                replica_id=replica_id,
                model_id=settings.model_id,
                tenant_id=settings.tenant_id,
                hash_scheme=HASH_SCHEME,
                metrics_url="",
            ),
            mapper=MapperSettings(
                block_size_tokens=TRACE_BLOCK_TOKENS,
                blocks_max=max(mapper.blocks_max, 2 * settings.cache_blocks),
            ),
        )


def check_zmq(settings: ReplaySettings) -> None:
    """Refuse what cannot be replayed through sockets.

    Args:
        settings: The replay.

    Raises:
        ConfigError: More replicas than this can run, or an unknown release.
    """
    layout_of(settings.engine_layout)
    if settings.replicas > REPLICAS_MAX:
        allowed = f"at most {REPLICAS_MAX} with --through-zmq"
        raise ConfigError(field="--replicas", value=settings.replicas, allowed=allowed)


@asynccontextmanager
async def zmq_plane(
    gateway: ReplayPlane, trace: ReplayInput, settings: ReplaySettings, clock: Clock
) -> AsyncIterator[ZmqReplayPlane]:
    """Run engines and producer for the length of a ``with`` block.

    Args:
        gateway: Does the lookups.
        trace: The prompts.
        settings: The replay.
        clock: Stamps messages.
    """
    engines = [ReplicaEngine(settings.engine_layout, clock) for _ in gateway.replica_ids]
    try:
        for engine in engines:
            engine.sockets.start()
        sources = tuple(
            engine.source(replica_id, settings)
            for engine, replica_id in zip(engines, gateway.replica_ids, strict=True)
        )
        producer_settings = ProducerSettings(
            sources=sources,
            outbox=OutboxSettings(window_ns=NS_PER_MS),
            delivery=DeliverySettings(servers=gateway.target),
        )
        async with running_producer(producer_settings, replay_log()) as producer:
            yield ZmqReplayPlane(gateway, engines, producer, trace, settings)
    finally:
        for engine in engines:
            await engine.sockets.stop()


def label_of(key: bytes) -> int:
    """Return a simulated engine's own name for the block that *key* names."""
    return int.from_bytes(key, "big") ^ _LABEL_MASK
