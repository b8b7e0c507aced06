"""A subscriber that comes late: everything is replayed to it while the engine goes on.

Workload: an engine whose ring holds 10,000 batches of one block each, and that publishes 200 more
a second from the moment a subscriber asks for the past; engine, subscriber and server share one
process and one loop. From the subscriber's start to its last key in the index. Budget: about 10 s.
"""

import asyncio
import json
from collections.abc import Iterator
from time import perf_counter

import uvloop

from benchmarks.measure import require
from benchmarks.options import Options
from benchmarks.row import Bound, Row
from benchmarks.workload import BLOCK_TOKENS, MODEL, SCHEME, TENANT
from inferencecache.app.fake_engine import FakeEngine, running_fake_engine
from inferencecache.app.producer import running_producer
from inferencecache.app.server import running_server
from inferencecache.settings.delivery import DeliverySettings
from inferencecache.settings.fake_engine import FakeEngineSettings
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.subscribe import EngineSettings, ProducerSettings, SourceSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.simulation import Step, parse_script

TARGET_S = 5.0
_LIVE_PER_S = 200
_LOOPBACK = "tcp://127.0.0.1:0"


def rows(options: Options) -> Iterator[Row]:
    """Yield how long it takes."""
    batches = 1_000 if options.quick else 10_000
    taken_s, live = uvloop.run(_replay(batches))
    yield Row(
        what=f"a replay of {batches:,} batches, until all is in the index",
        unit="s",
        value=taken_s,
        bound=Bound.AT_MOST,
        target=TARGET_S,
        note=f"{live} live ones came meanwhile; engine, subscriber and server on one core",
    )


async def _replay(batches: int) -> tuple[float, int]:
    engine_settings = FakeEngineSettings(
        layout="vllm-0.33",
        bind_endpoint=_LOOPBACK,
        replay_endpoint=_LOOPBACK,
        metrics_address="127.0.0.1:0",
        buffer_steps=2 * batches,
        cache_blocks=4 * batches,
    )
    server_settings = throwaway_server_settings(index=IndexSettings(entries_max=4 * batches))
    async with (
        running_fake_engine(engine_settings) as engine,
        running_server(server_settings) as server,
    ):
        steps = _steps(2 * batches)
        for _ in range(batches):
            await engine.play(next(steps))
        started = perf_counter()
        async with running_producer(_settings(engine, server.grpc_target)) as producer:
            publishing = asyncio.create_task(_publish(engine, steps))
            await producer.until(
                lambda: (
                    (producer.stats.sources[0].expected or 0) >= batches
                    and producer.is_synced
                    and producer.is_drained
                )
            )
            taken_s = perf_counter() - started
            publishing.cancel()
            live = engine.player.streams[0].next_number - batches
            require(server.plane.index.entries >= batches, "every batch has led to a key")
            require(producer.stats.sources[0].final_gaps == 0, "no batch was given up")
    return taken_s, live


async def _publish(engine: FakeEngine, steps: Iterator[Step]) -> None:
    await engine.wait_subscribed()
    for step in steps:
        await engine.play(step)
        await asyncio.sleep(1 / _LIVE_PER_S)


def _steps(total: int) -> Iterator[Step]:
    """Yield prompts of one block each, no two the same."""
    steps = [
        {"do": "serve", "start": BLOCK_TOKENS * number, "count": BLOCK_TOKENS}
        for number in range(total)
    ]
    yield from parse_script(json.dumps(steps), "one block each")


def _settings(engine: FakeEngine, target: str) -> ProducerSettings:
    followed = EngineSettings(
        endpoint=engine.endpoints[0],
        replay_endpoint=engine.replay_endpoints[0],
        replica_id="engine-0",
        tenant_id=TENANT,
        model_id=MODEL,
        hash_scheme=SCHEME,
        metrics_url="",
    )
    return ProducerSettings(
        sources=(SourceSettings(engine=followed),), delivery=DeliverySettings(servers=target)
    )
