"""The picker of one server: its objects, its port if it has one, and its periodic work."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Protocol

import grpc

from inferencecache.app.picker_fleet import PickerFleet, PickerFleetParts
from inferencecache.app.picker_plugins import no_plugins
from inferencecache.clock import NS_PER_S, Clock
from inferencecache.errors import ConfigError
from inferencecache.picker.choice import Chooser
from inferencecache.picker.decisions import DecisionRecords
from inferencecache.picker.fleet import Fleet, Member
from inferencecache.picker.pipeline import Director
from inferencecache.picker.prefix import NoPrefixSignal, PrefixSignal
from inferencecache.service.pick import PickParts, PickPlane
from inferencecache.settings.address import ADDRESS_FORM, BindAddress
from inferencecache.settings.fleet import FleetSettings
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.metrics import MetricsSettings
from inferencecache.settings.picker import PickerParseSettings, PickerSettings
from inferencecache.settings.picker_choice import PickerChoiceSettings, PickerSuppressionSettings
from inferencecache.settings.picker_load import PickerLoadSettings
from inferencecache.settings.picker_ttft import TtftSettings
from inferencecache.transport.boundary import Boundary, FailureLog, RpcObserver
from inferencecache.transport.free_memory import give_back
from inferencecache.transport.grpc_access import OpenGuard, TenantGuard
from inferencecache.transport.grpc_port import GrpcPort, RpcHandlers
from inferencecache.transport.picker_handler import (
    PICKER_SERVICE,
    PickerHandler,
    PickerHandlerParts,
    picker_rpc_handlers,
)
from inferencecache.transport.picker_metrics import PickerMetrics, PickerMetricsParts
from inferencecache.transport.picker_pick import PickRunner
from inferencecache.transport.picker_reader import BodyReader
from inferencecache.transport.picker_rehearsal import Rehearsal
from inferencecache.transport.random_ids import random_id
from inferencecache.transport.structured_log import EventLog

_MESSAGE_OVERHEAD_BYTES = 1_048_576
"""The picker's own port takes a largest chunk, or a report with a text as long, and no more."""

_STREAMS_UNLIMITED = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerParts:
    """What a picker is made of.

    Attributes:
        settings: What it may hold, and where it listens.
        parse: What a body may look like.
        port: Options of its own port, if it has one.
        metrics: Bounds of the metrics page.
        clock: Monotonic time.
        observer: Counts failures.
        log: Where it logs.
        credentials: Of its own port; None serves plaintext.
        guard: Decides which tenants a caller may pick for.
        chooser: Whoever chooses; None chooses from the fleet.
        choice: How destinations are chosen.
        suppression: When one that fails is left alone.
        fleet: What is believed of engines.
        load: How long a silent request counts as load.
        ttft: How the time to a first token is foreseen.
        prefix: Knows where prompts are warm.
        on_members: Told of the members of each fleet that comes into force.
        director: Takes Picks through the plugins.
        loaded: Returns the fleet of the files; None where there are none.
    """

    settings: PickerSettings
    parse: PickerParseSettings
    port: GrpcSettings
    metrics: MetricsSettings
    clock: Clock
    observer: RpcObserver
    log: EventLog
    credentials: grpc.ServerCredentials | None = None
    guard: TenantGuard = field(default_factory=OpenGuard)
    chooser: Chooser | None = None
    choice: PickerChoiceSettings = field(default_factory=PickerChoiceSettings)
    suppression: PickerSuppressionSettings = field(default_factory=PickerSuppressionSettings)
    fleet: FleetSettings = field(default_factory=FleetSettings)
    load: PickerLoadSettings = field(default_factory=PickerLoadSettings)
    ttft: TtftSettings = field(default_factory=TtftSettings)
    prefix: PrefixSignal = field(default_factory=NoPrefixSignal)
    on_members: Callable[[Iterable[Member]], None] = lambda _: None
    director: Director = field(default_factory=no_plugins)
    loaded: Callable[[], Fleet] | None = None


class PickerHealth(Protocol):
    """Shows the health of services."""

    async def withhold(self, service: str, *, is_withheld: bool) -> None:
        """Show *service* as NOT_SERVING for as long as it is not ready."""
        ...


class Picker:
    """Serves ``kinference.v1.Picker``.

    Args:
        parts: Its collaborators.

    Raises:
        ConfigError: The fixed endpoints, or its address, have another form.

    Attributes:
        plane: Bodies and decisions.
        fleet: What it picks from.
        records: How the last Picks came about.
        metrics: What it counts.
        rehearsal: Says where a request would go.
        services: What the plane's port serves for it; empty when it has a port of its own.
        health: Shows whether it serves; its own port, or that of the plane.
    """

    def __init__(self, parts: PickerParts) -> None:
        self._settings = parts.settings
        self.plane = PickPlane(
            PickParts(settings=parts.settings, clock=parts.clock, new_id=random_id)
        )
        self.fleet = PickerFleet(
            PickerFleetParts(
                endpoints=parts.settings.endpoints,
                director=parts.director,
                decision_ttl_ns=parts.settings.decision_ttl_ns,
                clock=parts.clock,
                log=parts.log,
                choice=_in_time(parts.choice, parts.settings),
                suppression=parts.suppression,
                fleet=parts.fleet,
                load=parts.load,
                ttft=parts.ttft,
                prefix=parts.prefix,
                on_members=parts.on_members,
                labels_max=parts.metrics.labels_max,
                loaded=parts.loaded,
            )
        )
        self.records = DecisionRecords(parts.choice.records_max)
        self.metrics = PickerMetrics(
            PickerMetricsParts(
                plane=self.plane,
                chooser=self.fleet.chooser,
                suppression=self.fleet.suppression,
                suppressions=self.fleet.suppressions,
                limits=self.fleet.limits,
                learning=self.fleet.learning,
                loads=self.fleet.knowledge.loads,
                scrapes=self.fleet.scrapes,
                room=self.fleet.room,
                clock=parts.clock,
                settings=parts.metrics,
            )
        )
        self._reader = BodyReader(parts.parse)
        self.rehearsal = Rehearsal(
            reader=self._reader,
            rehearse=self.fleet.chooser.rehearse,
            may_lack_model=lambda: self.fleet.chooser.may_lack_model,
            identifier_bytes_max=parts.settings.identifier_bytes_max,
        )
        handlers = {PICKER_SERVICE.full_name: self._handlers(parts)}
        self.services: Mapping[str, RpcHandlers] = {}
        self._port: GrpcPort | None = None
        self._is_shown_ready = True
        self.health: PickerHealth | None = None
        if parts.settings.bind_address:
            self._port = self.health = GrpcPort(_own_port(parts), handlers, parts.credentials)
        else:
            self.services = handlers

    async def start(self) -> BindAddress | None:
        """Listen on its own port and return the address, or None without one.

        Raises:
            ListenError: The address cannot be had.
        """
        await self.show_health()
        return None if self._port is None else await self._port.start()

    async def show_health(self) -> None:
        """Show NOT_SERVING until there was something to go by once, and SERVING from then on."""
        is_ready = self.fleet.is_valid
        if self.health is not None and is_ready != self._is_shown_ready:
            self._is_shown_ready = is_ready
            await self.health.withhold(PICKER_SERVICE.full_name, is_withheld=not is_ready)

    async def run(self) -> None:
        """Do, for ever, what no call does: let go of what is over, and ask engines how they do."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tidy())
            tasks.create_task(self.fleet.scrapes.run())

    async def _tidy(self) -> None:
        """End, for ever, what nobody asks for any more, and give its memory back."""
        bodies, highest = self.plane.bodies, 0
        while True:
            await asyncio.sleep(self._settings.tick_ns / NS_PER_S)
            self.plane.tick()
            self.fleet.tick()
            await self.show_health()
            highest = max(highest, bodies.buffered_bytes)
            if highest - bodies.buffered_bytes >= self._settings.give_back_bytes:
                highest = bodies.buffered_bytes
                await asyncio.to_thread(give_back)

    async def drain(self, limit_s: float) -> None:
        """Take no new bodies and wait for those that are there to be let go.

        Args:
            limit_s: Longest wait, in seconds.
        """
        self.plane.drain()
        self.fleet.room.close()
        if self._port is not None:
            await self._port.set_serving(is_serving=False)
        tick_s = self._settings.tick_ns / NS_PER_S
        for _ in range(ceil(limit_s / tick_s)):
            if not len(self.plane.bodies):
                return
            await asyncio.sleep(tick_s)

    async def end_connections(self) -> int:
        """Make all clients of its own port connect again; return how many there were."""
        return 0 if self._port is None else await self._port.end_connections()

    async def stop(self, grace_s: float) -> None:
        """End its own port and the processes that read for it.

        Args:
            grace_s: Longest wait for running calls, in seconds.
        """
        if self._port is not None:
            await self._port.stop(grace_s)
        self.plane.stop()
        self._reader.close()

    def _handlers(self, parts: PickerParts) -> RpcHandlers:
        chooser: Chooser = self.fleet.chooser
        if parts.chooser is not None:
            chooser = parts.chooser
        runner = PickRunner(
            plane=self.plane,
            reader=self._reader,
            chooser=chooser,
            may_lack_model=lambda: self.fleet.chooser.may_lack_model,
            records=self.records,
            metrics=self.metrics,
            clock=parts.clock,
            log=parts.log,
        )
        failures = FailureLog(
            parts.observer, parts.log, parts.clock, parts.port.failure_log_interval_ns
        )
        handler = PickerHandler(
            PickerHandlerParts(runner=runner, settings=parts.settings, guard=parts.guard)
        )
        return picker_rpc_handlers(handler, Boundary(parts.observer, failures))


def _in_time(choice: PickerChoiceSettings, settings: PickerSettings) -> PickerChoiceSettings:
    """Return *choice* with waits that leave time to pull the body: it lives on from the Pick."""
    wait_ns = min(choice.deferrable_wait_ns, settings.unpulled_ttl_ns // 2)
    return replace(choice, deferrable_wait_ns=wait_ns)


def _own_port(parts: PickerParts) -> GrpcSettings:
    """Return the settings of a port that serves the picker alone; it compresses nothing.

    Bodies are limited by their own number, so calls are not: where the library limits calls per
    connection, it stops to answer for a while when many of them are cancelled.

    Raises:
        ConfigError: Its address has another form.
    """
    address = parts.settings.bind_address
    try:
        BindAddress.parse(address)
    except ValueError:
        raise ConfigError(
            field="picker-bind-address", value=address, allowed=ADDRESS_FORM
        ) from None
    receive_bytes_max = parts.settings.chunk_bytes_max + _MESSAGE_OVERHEAD_BYTES
    return replace(
        parts.port,
        bind_address=address,
        receive_bytes_max=receive_bytes_max,
        streams_max=_STREAMS_UNLIMITED,
        compression="none",
    )
