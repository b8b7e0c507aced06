"""The parts of a demo, running: engines and their subscribers, server, gateway and provider."""

import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from inferencecache.app.demo_engines import DemoEngines
from inferencecache.app.demo_files import (
    HOSTED_MODEL,
    MODEL,
    POOL,
    SCHEME,
    TENANT,
    DemoFiles,
)
from inferencecache.app.demo_log import DemoLog
from inferencecache.app.demo_provider import DemoProvider
from inferencecache.app.fake_engine import FakeEngine, running_fake_engine
from inferencecache.app.gateway import Gateway
from inferencecache.app.producer import Producer, running_producer
from inferencecache.app.server import Server, running_server
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.control import ControlSettings
from inferencecache.settings.delivery import DeliverySettings
from inferencecache.settings.demo import DemoSettings
from inferencecache.settings.fake_engine import FakeEngineSettings
from inferencecache.settings.gateway import (
    GatewayPickerSettings,
    GatewayRequestSettings,
    GatewaySettings,
)
from inferencecache.settings.gateway_listen import GatewayListenSettings, GatewayPageSettings
from inferencecache.settings.gateway_upstream import GatewayUpstreamSettings
from inferencecache.settings.picker_choice import PickerSuppressionSettings
from inferencecache.settings.producer import LoadSettings, OutboxSettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.settings.server import ServerSettings
from inferencecache.settings.subscribe import EngineSettings, ProducerSettings, SourceSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport.system_clock import SystemClock
from inferencecache.types import PartitionKey

LAYOUTS: Final = ("vllm-0.10.2", "vllm-0.24", "vllm-0.33")
"""One engine of each: old arrays, maps, and maps with wide headers."""

_LOOPBACK: Final = "127.0.0.1:0"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoFleet:
    """What runs.

    Attributes:
        server: The server, with the picker.
        engines: The engines.
        producers: Their subscribers, in the same order.
        engine_control: Kills engines.
        gateway: Takes requests.
        provider: Serves what the engines do not.
        files: What the server and the gateway are told.
        log: What they complain about.
    """

    server: Server
    engines: Sequence[FakeEngine]
    producers: Sequence[Producer]
    engine_control: DemoEngines
    gateway: Gateway
    provider: DemoProvider
    files: DemoFiles
    log: DemoLog

    @property
    def replica_ids(self) -> list[str]:
        """The engines' names in the index."""
        return [_name(number) for number in range(len(self.engines))]

    @property
    def addresses(self) -> dict[str, str]:
        """The engines' names, by the address at which they answer."""
        return {address: name for name, address in _addresses(self.engines).items()}

    def suppressed_s(self, now_ns: int) -> dict[str, float]:
        """Return whom the picker leaves alone, by name, and for how many more seconds.

        Args:
            now_ns: Monotonic time.
        """
        remaining = self.server.picker.fleet.suppression.remaining_ns(now_ns)
        return {self.named(str(who)): left_ns / NS_PER_S for who, left_ns in remaining.items()}

    def named(self, text: str) -> str:
        """Return *text* with engines by their names instead of their addresses."""
        for address, name in self.addresses.items():
            text = text.replace(address, name)
        return text

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
    log = DemoLog()
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="inferencecache-demo-"))
        files = DemoFiles(Path(directory), settings)
        files.write(secrets.token_urlsafe())
        engines = [
            await stack.enter_async_context(running_fake_engine(_engine(number, settings)))
            for number in range(len(LAYOUTS))
        ]
        provider = DemoProvider(HOSTED_MODEL, files.accepted_key, SystemClock())
        await provider.start()
        stack.push_async_callback(provider.stop)
        files.write_objects(_addresses(engines), provider.address)
        server = await stack.enter_async_context(running_server(_server(files, settings), log))
        producers = [
            await stack.enter_async_context(
                running_producer(_producer(engine, number, server.grpc_target), log)
            )
            for number, engine in enumerate(engines)
        ]
        for engine, producer in zip(engines, producers, strict=True):
            await engine.wait_subscribed()
            await producer.wait_synced()
        gateway = Gateway(_gateway(files, settings, server.grpc_target), log)
        await gateway.start()
        stack.push_async_callback(gateway.stop, 0)
        named = {_name(number): engine for number, engine in enumerate(engines)}
        control = DemoEngines(named, settings.engine_control_address, settings.down_ns)
        await control.start()
        stack.push_async_callback(control.stop)
        yield DemoFleet(
            server=server,
            engines=engines,
            producers=producers,
            engine_control=control,
            gateway=gateway,
            provider=provider,
            files=files,
            log=log,
        )


def _name(number: int) -> str:
    return f"engine-{number}"


def _addresses(engines: Sequence[FakeEngine]) -> dict[str, str]:
    """Return where each engine answers, by name."""
    return {
        _name(number): engine.requests.address
        for number, engine in enumerate(engines)
        if engine.requests is not None
    }


def _has_taken(producer: Producer, wanted: int) -> Callable[[], bool]:
    return lambda: (producer.stats.sources[0].expected or 0) == wanted


def _engine(number: int, settings: DemoSettings) -> FakeEngineSettings:
    return FakeEngineSettings(
        name=_name(number),
        layout=LAYOUTS[number],
        bind_endpoint=f"tcp://{_LOOPBACK}",
        replay_endpoint=f"tcp://{_LOOPBACK}",
        metrics_address=_LOOPBACK,
        openai_address=_LOOPBACK,
        model_name=MODEL,
        cache_blocks=settings.cache_blocks,
        prefill_tokens_per_s=settings.prefill_tokens_per_s,
        base_ns=settings.base_ns,
    )


def _suppression(settings: DemoSettings) -> PickerSuppressionSettings:
    return PickerSuppressionSettings(backoff_min_ns=settings.suppress_ns)


def _server(files: DemoFiles, settings: DemoSettings) -> ServerSettings:
    return throwaway_server_settings(
        control=ControlSettings(bind_address=settings.control_address),
        resources=ResourceSettings(directory=str(files.resources)),
        picker_suppression=_suppression(settings),
    )


def _gateway(files: DemoFiles, settings: DemoSettings, target: str) -> GatewaySettings:
    """Return the settings of a gateway that gets to the provider even if all engines are gone.

    Each attempt goes to another destination, so as many are enough.
    """
    attempts_max = len(LAYOUTS) + 1
    return GatewaySettings(
        requests=GatewayRequestSettings(shows_decision=True),
        listen=GatewayListenSettings(bind_address=settings.listen_address),
        picker=GatewayPickerSettings(target=target, pool=POOL),
        upstream=GatewayUpstreamSettings(
            secrets_directory=str(files.secrets), attempts_max=attempts_max
        ),
        resources=ResourceSettings(directory=str(files.resources)),
        pages=GatewayPageSettings(bind_address=_LOOPBACK),
    )


def _producer(engine: FakeEngine, number: int, target: str) -> ProducerSettings:
    source = SourceSettings(
        engine=EngineSettings(
            endpoint=engine.endpoints[0],
            replay_endpoint=engine.replay_endpoints[0],
            replica_id=_name(number),
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
