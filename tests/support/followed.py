"""A producer between the sockets of a scripted engine and real servers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from engine_sockets import EngineSockets, engine_sockets

from inferencecache.app.producer import Producer, running_producer
from inferencecache.app.server import Server, running_server
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.fingerprint import chain
from inferencecache.settings.client import ClientSettings
from inferencecache.settings.delivery import DeliverySettings
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.producer import MapperSettings, OutboxSettings, SequenceSettings
from inferencecache.settings.subscribe import (
    EngineSettings,
    ProducerSettings,
    SourceSettings,
)
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.types import CacheTier, PartitionKey

TENANT, MODEL, REPLICA, SCHEME = "t1", "m1", "pod-1", "vllm"
LIMIT_S = 30
WINDOW_NS = 5 * NS_PER_MS
PATIENT = SequenceSettings(replay_idle_ns=10 * NS_PER_S)
"""Replays end with their mark; a machine with much to do is not taken for one that is silent."""
QUICK = ClientSettings(reconnect_initial_ns=20 * NS_PER_MS, reconnect_max_ns=100 * NS_PER_MS)


class Lines:
    """An event log that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []

    def debug(self, event: str, **fields: object) -> None:
        """Keep one line."""
        self.lines.append((event, fields))

    info = warning = error = exception = debug

    @property
    def events(self) -> list[str]:
        """The names of the events."""
        return [event for event, _ in self.lines]

    def fields_of(self, event: str) -> list[dict[str, object]]:
        """Return what was told with each *event*."""
        return [fields for name, fields in self.lines if name == event]


def source(engine: EngineSockets, *, replay: bool = True, **fields: Any) -> SourceSettings:
    """Return a source with few limits; *fields* are knobs of the engine, or whole groups."""
    groups = {
        "mapper": fields.pop("mapper", MapperSettings()),
        "sequence": fields.pop("sequence", PATIENT),
    }
    knobs = {
        "endpoint": engine.endpoint,
        "replay_endpoint": engine.replay_endpoint if replay else "",
        "replica_id": REPLICA,
        "model_id": MODEL,
        "tenant_id": TENANT,
        "metrics_url": "",
        **fields,
    }
    return SourceSettings(engine=EngineSettings(**knobs), **groups)


def producer_settings(
    *sources: SourceSettings,
    servers: str,
    **delivery: Any,
) -> ProducerSettings:
    """Return the settings of a producer with a short window and short pauses."""
    page = delivery.pop("page", None)
    client = delivery.pop("client", QUICK)
    limits = {"retry_initial_ns": 5 * NS_PER_MS, "retry_max_ns": 20 * NS_PER_MS, "drain_ns": 0}
    return ProducerSettings(
        sources=sources,
        page=page,
        outbox=OutboxSettings(window_ns=WINDOW_NS),
        delivery=DeliverySettings(servers=servers, **{**limits, **delivery}),
        client=client,
    )


def held(
    server: Server, prompt: list[int], *, adapter_id: str = "", replica_id: str = REPLICA
) -> tuple[int, CacheTier | None]:
    """Return how many leading tokens of *prompt* a replica is known to hold, and where."""
    hashes = chain(prompt, 16)
    key = PartitionKey(TENANT, MODEL, SCHEME, adapter_id)
    found = server.plane.index.match_chain(key, hashes, [16] * len(hashes), 1)
    for name, tokens, _, tier, _ in found:
        if name == replica_id:
            return tokens, CacheTier(tier)
    return 0, None


def matched(server: Server, prompt: list[int], **fields: Any) -> int:
    """Return how many leading tokens of *prompt* a replica is known to hold."""
    return held(server, prompt, **fields)[0]


class Rig:
    """One engine, one server, one producer between them.

    Attributes:
        engine: The engine's sockets.
        server: The server.
        producer: The producer.
        log: What the producer logged.
    """

    def __init__(
        self, engine: EngineSockets, server: Server, producer: Producer, log: Lines
    ) -> None:
        self.engine = engine
        self.server = server
        self.producer = producer
        self.log = log

    async def synced(self) -> None:
        """Wait until the producer is connected and synced."""
        async with asyncio.timeout(LIMIT_S):
            await self.producer.wait_synced()
            await self.engine.subscribed.wait()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until *holds*, which only the producer makes true."""
        async with asyncio.timeout(LIMIT_S):
            await self.producer.until(holds)

    async def settled(self, expected: int) -> None:
        """Wait until the batch before number *expected* was taken in and delivered."""
        await self.until(lambda: self.producer.stats.sources[0].expected == expected)
        async with asyncio.timeout(LIMIT_S):
            await self.producer.wait_synced()
            await self.producer.drained()

    def matched(self, prompt: list[int], **fields: Any) -> int:
        """Return how many leading tokens of *prompt* the replica is known to hold."""
        return matched(self.server, prompt, **fields)


@asynccontextmanager
async def rig(*, replay: bool = True, **fields: Any) -> AsyncIterator[Rig]:
    """Run all three; the engine has published nothing yet."""
    async with engine_sockets() as engine, following(engine, replay=replay, **fields) as found:
        yield found


@asynccontextmanager
async def following(
    engine: EngineSockets,
    *,
    replay: bool = True,
    **fields: Any,
) -> AsyncIterator[Rig]:
    """Run a server and a producer behind *engine*."""
    log = Lines()
    async with running_server(throwaway_server_settings(), Lines()) as server:
        chosen = producer_settings(
            source(engine, replay=replay, **fields), servers=server.grpc_target
        )
        async with running_producer(chosen, log) as producer:
            yield Rig(engine, server, producer, log)


@asynccontextmanager
async def server_at(target: str) -> AsyncIterator[Server]:
    """Run a server at an address that is given, as of an earlier one."""
    settings = throwaway_server_settings(grpc=GrpcSettings(bind_address=target))
    async with running_server(settings, Lines()) as server:
        yield server
