"""One gateway: its listeners, its connections and its tasks, from start to drain."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from inferencecache import __version__
from inferencecache.app.gateway_secrets import client_keys, listener_tls
from inferencecache.app.resources import ResourceParts, Resources
from inferencecache.app.rotation import Rotation
from inferencecache.clock import NS_PER_S, Clock
from inferencecache.gateway import ReplayRoom
from inferencecache.settings.address import BindAddress
from inferencecache.settings.gateway import GatewaySettings
from inferencecache.settings.gateway_check import check_gateway
from inferencecache.transport.delivery_tls import server_credentials
from inferencecache.transport.gateway_answer import AnswerPasser
from inferencecache.transport.gateway_attempt_log import AttemptLog
from inferencecache.transport.gateway_backends import Backends
from inferencecache.transport.gateway_exchange import ExchangeParts
from inferencecache.transport.gateway_http import GatewayPages
from inferencecache.transport.gateway_metrics import GatewayMetrics
from inferencecache.transport.gateway_picker import PickerClient
from inferencecache.transport.gateway_reports import Reports
from inferencecache.transport.gateway_upstream import Upstreams
from inferencecache.transport.http_connections import HttpServer
from inferencecache.transport.http_pages import PageListener
from inferencecache.transport.metric_cells import Family
from inferencecache.transport.producer_http import ProducerView, producer_listener
from inferencecache.transport.producer_metrics import MetricsPage
from inferencecache.transport.structured_log import EventLog, StructuredLog
from inferencecache.transport.system_clock import SystemClock
from inferencecache.transport.tls_listeners import http_context

_LAST_REPORTS_S: Final = 1.0
"""What reports get in any case: those of the requests that were just cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """What exists from the start to the end.

    Attributes:
        picker: The connection to the picker.
        reports: On their way to it.
        upstreams: Connections to destinations.
        pages: Answer clients.
        server: Listens to clients.
        own_pages: Listens to whoever looks after the gateway.
    """

    picker: PickerClient
    reports: Reports
    upstreams: Upstreams
    pages: GatewayPages
    server: HttpServer
    own_pages: PageListener


class Gateway:
    """A reverse proxy that asks a picker where requests go.

    Args:
        settings: Everything it can be told.
        log: Where it logs.
        clock: Where it takes the time from.

    Raises:
        ConfigError: The settings make no sense.
        StartError: A file it needs is not usable.

    Attributes:
        metrics: What is counted.
        backends: Where providers are reached.
        resources: The objects from files.
    """

    def __init__(
        self, settings: GatewaySettings, log: EventLog | None = None, clock: Clock | None = None
    ) -> None:
        check_gateway(settings)
        self._settings = settings
        self._log = log or StructuredLog()
        self._clock = clock or SystemClock()
        self._credentials = server_credentials(settings.picker_tls)
        self._room = ReplayRoom(
            body_bytes_max=settings.requests.replay_bytes_max,
            total_bytes_max=settings.requests.replay_total_bytes_max,
        )
        self.metrics = GatewayMetrics(self._room)
        self.backends = Backends(
            settings.upstream.secrets_directory, self._clock, self._complain_of_backend
        )
        self.resources = Resources(
            ResourceParts(
                settings=settings.resources,
                consumers=(self.backends,),
                clock=self._clock,
                log=self._log,
            )
        )
        self._tls = listener_tls(settings.tls, self._clock, self._log)
        self._keys = client_keys(settings.requests.api_key_file, self._clock, self._log)
        self._page = MetricsPage(self._families)
        self._running: _Running | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._addresses: tuple[BindAddress, BindAddress] | None = None
        self._is_ready = False

    @property
    def url(self) -> str:
        """The URL at which a client in this machine reaches the gateway.

        Raises:
            RuntimeError: It has not been started.
        """
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{self._reachable(0)}"

    @property
    def page_url(self) -> str:
        """The URL at which a client in this machine reaches the gateway's own pages.

        Raises:
            RuntimeError: It has not been started.
        """
        return f"http://{self._reachable(1)}"

    async def start(self) -> None:
        """Listen, and begin the periodic work; the picker need not be there.

        Raises:
            ListenError: A listener cannot have its address; nothing keeps running then.
            ConfigError: The resource directory cannot be read.
        """
        await self.resources.start()
        running = self._running = self._connect()
        tls = None if self._tls is None else http_context(self._tls)
        try:
            address = await running.server.start(tls)
            page_address = await running.own_pages.start()
        except BaseException:
            await self._close(0)
            raise
        self._addresses = (address, page_address)
        self._begin_tasks()
        self._is_ready = True
        self._log.info(
            "gateway_started",
            version=__version__,
            addr=str(address),
            tls=self._tls is not None,
            http_addr=str(page_address),
            picker=self._settings.picker.target,
        )

    async def wait_broken(self) -> None:
        """Wait for ever, or until periodic work breaks.

        Raises:
            Exception: Whatever broke it.
        """
        await asyncio.gather(*self._tasks, asyncio.get_running_loop().create_future())

    async def stop(self, drain_ns: int | None = None) -> None:
        """Take no more requests, let running ones and reports finish, then close everything.

        Args:
            drain_ns: Longest wait in nanoseconds; None takes the setting.
        """
        self._is_ready = False
        self._log.info("gateway_stopping", inflight=self.metrics.in_flight)
        wait_ns = self._settings.process.drain_ns if drain_ns is None else drain_ns
        await self._close(wait_ns / NS_PER_S)
        self._log.info("gateway_stopped")

    @property
    def _sees_picker(self) -> bool:
        return self._running is not None and self._running.picker.is_connected

    def _connect(self) -> _Running:
        """Open what needs a running loop."""
        settings = self._settings
        picker = PickerClient(
            settings.picker, self._credentials, settings.requests.upload_timeout_ns
        )
        reports = Reports(picker, self.metrics.reported, settings.picker.reports_max)
        self.metrics.pending_reports = lambda: reports.waiting
        upstreams = Upstreams(settings.upstream)
        parts = ExchangeParts(
            settings=settings,
            picker=picker,
            reports=reports,
            backends=self.backends,
            upstreams=upstreams,
            passer=AnswerPasser(
                upstreams, self.metrics, self._clock, settings.upstream.scan_bytes_max
            ),
            room=self._room,
            metrics=self.metrics,
            clock=self._clock,
            log=self._log,
            attempt_log=AttemptLog(
                self._log, self._clock, settings.process.failure_log_interval_ns
            ),
        )
        pages = GatewayPages(parts, self._keys)
        return _Running(
            picker=picker,
            reports=reports,
            upstreams=upstreams,
            pages=pages,
            server=HttpServer("gateway", pages.answer, settings.listen, ends_with_peer=True),
            own_pages=producer_listener(settings.pages, self._view(), self._log),
        )

    def _view(self) -> ProducerView:
        return ProducerView(
            is_ready=lambda: self._is_ready and self._sees_picker,
            describe=lambda: f"picker connected: {str(self._sees_picker).lower()}\n",
            render_metrics=self._page.render,
        )

    def _begin_tasks(self) -> None:
        if self._tls is not None:
            rotation = Rotation(
                {"gateway": self._tls}, {}, self._settings.tls.check_interval_ns, self._log
            )
            self._tasks.append(asyncio.create_task(rotation.run(), name="rotation"))
        if self.resources.is_enabled:
            self._tasks.append(asyncio.create_task(self.resources.run(), name="resources"))

    async def _close(self, wait_s: float) -> None:
        """Close everything, the listener first."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + wait_s
        running = self._running
        if running is not None:
            await running.pages.drain(wait_s)
            await running.server.stop()
            await running.reports.drained(max(end_s - loop.time(), _LAST_REPORTS_S))
            await running.own_pages.stop()
            await running.upstreams.close()
            await running.picker.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _families(self) -> list[Family]:
        return [*self.metrics.families(), *self.resources.families()]

    def _reachable(self, place: int) -> BindAddress:
        if self._addresses is None:
            raise RuntimeError("the gateway has not been started")
        address = self._addresses[place]
        return BindAddress(host=address.host or "127.0.0.1", port=address.port)

    def _complain_of_backend(self, backend: str, reason: str) -> None:
        """Tell of files that cannot be used; called in a thread, where counting is no problem."""
        self.metrics.files_refused()
        self._log.error("gateway_backend_files", backend=backend, reason=reason)


@asynccontextmanager
async def running_gateway(
    settings: GatewaySettings, log: EventLog | None = None
) -> AsyncIterator[Gateway]:
    """Run a gateway for the length of a ``with`` block, then end it without waiting for requests.

    Args:
        settings: Everything it can be told.
        log: Where it logs.
    """
    gateway = Gateway(settings, log)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop(drain_ns=0)
