"""One server: the objects, the listeners and the tasks, from start to drain."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from inferencecache import __version__
from inferencecache.app.build import installed_commit
from inferencecache.app.control import Control
from inferencecache.app.picker import Picker, PickerParts
from inferencecache.app.picker_plugins import PickerPluginParts, PickerPlugins
from inferencecache.app.picker_prefix import PickerPrefix, PickerPrefixParts
from inferencecache.app.prompt_texts import model_tokenizers
from inferencecache.app.resources import FilePolicies, ResourceParts, Resources
from inferencecache.app.rotation import Rotation
from inferencecache.app.security import Security
from inferencecache.app.upkeep import Upkeep
from inferencecache.clock import NS_PER_S, Clock
from inferencecache.index import PrefixIndex
from inferencecache.picker.fleet import Fleet
from inferencecache.picker.prefix.sightings import Sightings
from inferencecache.policy import PolicyStore
from inferencecache.service import CachePlane, PlaneParts
from inferencecache.service.picker_objects import JointQualifiers, PickerObjects
from inferencecache.settings.address import BindAddress
from inferencecache.settings.server import ServerSettings
from inferencecache.transport.grpc_access import TenantGuard
from inferencecache.transport.grpc_server import GrpcListener, GrpcParts
from inferencecache.transport.http_public import PublicView, public_listener
from inferencecache.transport.prometheus import ServerMetrics
from inferencecache.transport.structured_log import EventLog, StructuredLog
from inferencecache.transport.system_clock import SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where a running server listens, with real ports.

    Attributes:
        grpc: The gRPC services.
        http: Health, readiness and metrics.
        control: Snapshot, policy, probe and debug pages.
        picker: The picker's own port, if it has one.
    """

    grpc: BindAddress
    http: BindAddress
    control: BindAddress
    picker: BindAddress | None = None


class Server:
    """A cache plane with its listeners.

    Args:
        settings: Everything it can be told.
        log: Where it logs.
        clock: Where it takes the time from.
        environ: Where it finds its cluster; None means the process environment.

    Raises:
        ConfigError: The settings make no sense together.
        StartError: A file it needs, or the cluster, is not usable.

    Attributes:
        plane: The use cases, for callers in the same process.
        metrics: What is counted.
        resources: The objects from files.
        picker_objects: Those of them that the picker picks from.
        picker: What gateways hand their requests to.
        prefix: What the picker knows of caches.
        rotation: Follows the certificate files.
    """

    def __init__(
        self,
        settings: ServerSettings,
        log: EventLog | None = None,
        clock: Clock | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._log = log or StructuredLog()
        self._clock = clock = clock or SystemClock()
        self._security = Security(settings, clock, self._log, environ)
        policies = PolicyStore(settings.policy, default_ttl_ns=settings.index.ttl_ns)
        index = PrefixIndex(settings.index, policies)
        self.metrics = ServerMetrics(settings.metrics, index, clock)
        sightings = Sightings(settings.picker_prefix.replicas_max)
        self._prompt_texts = model_tokenizers(
            settings.lookup, settings.picker_prompt, clock, self._log
        )
        self.plane = self._new_plane(index, policies, sightings)
        self._connect_metrics()
        self.picker_objects = PickerObjects(settings.fleet, clock)
        self._control = Control(self.plane, settings, self._security, self._log)
        self._upkeep = Upkeep(
            settings=settings, plane=self.plane, metrics=self.metrics, clock=clock
        )
        guard = self._security.guard(self._control.metrics.access_denied)
        self._plugins = self._new_plugins()
        self.prefix = self._new_prefix(sightings)
        self.picker = self._new_picker(guard)
        self._connect_picker()
        self.resources = self._new_resources()
        self._grpc = self._new_grpc(guard)
        self.picker.health = self.picker.health or self._grpc
        self._add_sources()
        self._http = public_listener(settings.http, self._view(), self._log)
        self._control_http = self._control.listener(
            self.resources.status, self.picker_objects, self.picker
        )
        self.rotation = Rotation(
            self._security.tls_files,
            {"grpc": self._end_grpc, "control": self._control_http.end_certified},
            settings.tls.check_interval_ns,
            self._log,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._addresses: Addresses | None = None
        self._is_ready = False

    def _new_plane(
        self, index: PrefixIndex, policies: PolicyStore, sightings: Sightings
    ) -> CachePlane:
        return CachePlane(
            PlaneParts(
                index=index,
                policies=policies,
                clock=self._clock,
                lookup=self._settings.lookup,
                ranking=self._settings.ranking,
                observer=self.metrics.lookups,
                replicas=sightings,
                tokenizer=self._prompt_texts,
            )
        )

    def _new_plugins(self) -> PickerPlugins:
        settings = self._settings
        return PickerPlugins(
            PickerPluginParts(
                settings=settings.picker_plugins,
                resources=settings.resources,
                clock=self._clock,
                log=self._log,
                log_interval_ns=settings.grpc.failure_log_interval_ns,
                choice=settings.picker_choice,
            )
        )

    def _new_prefix(self, sightings: Sightings) -> PickerPrefix:
        settings = self._settings
        return PickerPrefix(
            PickerPrefixParts(
                settings=settings.picker_prefix,
                prompt=settings.picker_prompt,
                choice=settings.picker_choice,
                index=settings.picker_index,
                clock=self._clock,
                log=self._log,
                plane=self.plane,
                sightings=sightings,
                labels_max=settings.metrics.labels_max,
            )
        )

    def _new_picker(self, guard: TenantGuard) -> Picker:
        settings = self._settings
        return Picker(
            PickerParts(
                settings=settings.picker,
                parse=settings.picker_parse,
                port=settings.grpc,
                metrics=settings.metrics,
                clock=self._clock,
                observer=self.metrics,
                log=self._log,
                credentials=self._security.credentials(),
                guard=guard,
                director=self._plugins.director,
                choice=settings.picker_choice,
                suppression=settings.picker_suppression,
                fleet=settings.fleet,
                load=settings.picker_load,
                ttft=settings.picker_ttft,
                prefix=self.prefix,
                on_members=self.prefix.adopt,
                loaded=self._loaded_fleet if settings.resources.directory else None,
            )
        )

    def _new_resources(self) -> Resources:
        settings = self._settings
        consumers = (
            FilePolicies(self.plane, settings.policy),
            self._security,
            self.picker_objects,
            self.picker.fleet,
        )
        return Resources(
            ResourceParts(
                settings=settings.resources,
                consumers=consumers,
                clock=self._clock,
                log=self._log,
            )
        )

    def _new_grpc(self, guard: TenantGuard) -> GrpcListener:
        return GrpcListener(
            GrpcParts(
                plane=self.plane,
                observer=self.metrics,
                log=self._log,
                settings=self._settings.grpc,
                credentials=self._security.credentials(),
                services=self.picker.services,
                guard=guard,
            )
        )

    def _add_sources(self) -> None:
        """Show the numbers that others keep."""
        for source in (
            self.resources.families,
            self._control.metrics.families,
            self.picker.metrics.families,
            self._plugins.watch.families,
            self.prefix.families,
            self._grpc.stages.families,
        ):
            self.metrics.add_source(source)

    def _connect_picker(self) -> None:
        """Let objects show how the picker is doing, and plugins take effect when they change."""
        fleet = self.picker.fleet
        self.picker_objects.qualifiers = JointQualifiers((fleet.suppression, self.prefix))
        self.picker_objects.profiles = fleet.profile_names
        self._plugins.on_change = fleet.use

    @property
    def addresses(self) -> Addresses:
        """Where the server listens.

        Raises:
            RuntimeError: It has not been started.
        """
        if self._addresses is None:
            raise RuntimeError("the server has not been started")
        return self._addresses

    @property
    def grpc_target(self) -> str:
        """The target at which a client in this machine reaches the gRPC services."""
        return str(_reachable(self.addresses.grpc))

    @property
    def http_url(self) -> str:
        """The URL at which a client in this machine reaches the public pages."""
        return f"http://{_reachable(self.addresses.http)}"

    @property
    def control_url(self) -> str:
        """The URL at which a client in this machine reaches the control surface."""
        scheme = "http" if self._security.control_tls is None else "https"
        return f"{scheme}://{_reachable(self.addresses.control)}"

    async def start(self) -> None:
        """Bind the listeners and begin the periodic work.

        Raises:
            ListenError: A listener cannot have its address; nothing keeps running then.
            ConfigError: The resource directory cannot be read.
        """
        await self.resources.start()
        self.metrics.set_up(is_up=True)
        try:
            await self.prefix.start()
            await self.picker.show_health()
            grpc_address = await self._grpc.start()
            picker_address = await self.picker.start()
            http_address = await self._http.start()
            control_address = await self._control_http.start()
        except BaseException:
            await self._close(grace_ns=0)
            raise
        self._addresses = Addresses(
            grpc=grpc_address, http=http_address, control=control_address, picker=picker_address
        )
        self._tasks = [
            asyncio.create_task(work, name=name) for name, work in self._upkeep.tasks().items()
        ]
        self._tasks.append(asyncio.create_task(self.rotation.run(), name="rotation"))
        self._tasks.append(asyncio.create_task(self.picker.run(), name="picker"))
        self._tasks.append(asyncio.create_task(self._plugins.run(), name="picker-plugins"))
        self._tasks.append(asyncio.create_task(self.prefix.run(), name="picker-prefix"))
        if self.resources.is_enabled:
            self._tasks.append(asyncio.create_task(self.resources.run(), name="resources"))
        self._is_ready = True
        self._log.info(
            "startup",
            version=__version__,
            commit=installed_commit(),
            grpc_addr=str(grpc_address),
            grpc_tls=self._security.grpc_tls is not None,
            http_addr=str(http_address),
            snapshot_addr=str(control_address),
        )
        self._security.log_state()

    async def wait_broken(self) -> None:
        """Wait for ever, or until periodic work breaks.

        Raises:
            Exception: Whatever broke it.
        """
        await asyncio.gather(*self._tasks)

    async def stop(self, drain_ns: int | None = None) -> None:
        """Take no more work, let running work finish, then close everything.

        Args:
            drain_ns: Longest wait for running calls in nanoseconds; None takes the setting.
        """
        self._is_ready = False
        self._log.info("graceful_shutdown_started")
        await self._close(self._settings.process.drain_ns if drain_ns is None else drain_ns)
        self._log.info("graceful_shutdown_done")

    async def _close(self, grace_ns: int) -> None:
        """Close the listeners, gRPC first: health stays visible over HTTP while it drains."""
        end_s = asyncio.get_running_loop().time() + grace_ns / NS_PER_S
        await self._grpc.set_serving(is_serving=False)
        await self.picker.drain(grace_ns / NS_PER_S)
        left_s = max(end_s - asyncio.get_running_loop().time(), 0)
        await asyncio.gather(self._grpc.stop(left_s), self.picker.stop(left_s))
        await self.prefix.stop()
        if self._prompt_texts is not None:
            self._prompt_texts.stop()
        await self._http.stop()
        await self._control_http.stop()
        self._control.changes.close()
        await self._security.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.metrics.set_up(is_up=False)

    def _connect_metrics(self) -> None:
        self.metrics.watch_fail_opens(self.plane.fail_opens, lambda: self.plane.chains_cut)
        self.metrics.set_grpc_tls(is_enabled=self._security.grpc_tls is not None)

    def _loaded_fleet(self) -> Fleet:
        return self.picker_objects.fleet

    async def _end_grpc(self) -> int:
        """Make every client of the gRPC ports connect again; return how many there were."""
        return sum(
            await asyncio.gather(self._grpc.end_connections(), self.picker.end_connections())
        )

    def _view(self) -> PublicView:
        return PublicView(
            is_ready=lambda: self._is_ready,
            is_warm=lambda: self._control.is_warm,
            render_metrics=self.metrics.render,
        )


@asynccontextmanager
async def running_server(
    settings: ServerSettings, log: EventLog | None = None
) -> AsyncIterator[Server]:
    """Run a server for the length of a ``with`` block, then end it without waiting for calls.

    Args:
        settings: Everything it can be told.
        log: Where it logs.
    """
    server = Server(settings, log)
    await server.start()
    try:
        yield server
    finally:
        await server.stop(drain_ns=0)


def _reachable(address: BindAddress) -> BindAddress:
    """Return *address* with a host that a client can name."""
    return BindAddress(host=address.host or "127.0.0.1", port=address.port)
