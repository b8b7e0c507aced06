"""The producer's own pages: ``/healthz``, ``/readyz``, ``/metrics``."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from inferencecache.settings.address import BindAddress
from inferencecache.settings.subscribe import ProducerPageSettings
from inferencecache.transport.http_answer import refusal
from inferencecache.transport.http_connections import ConnectionLimits, HttpServer
from inferencecache.transport.listen import open_listening_socket
from inferencecache.transport.structured_log import EventLog


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerView:
    """What the pages show.

    Attributes:
        is_ready: Whether every engine is connected and synced.
        describe: One line per engine and server, for people.
        render_metrics: Makes the metrics page.
    """

    is_ready: Callable[[], bool]
    describe: Callable[[], str]
    render_metrics: Callable[[], Awaitable[bytes]]


class ProducerPages:
    """Serves the pages over plain HTTP, within the limits of the settings.

    Args:
        settings: Where.
        view: What.
        log: Where a failing page is reported.
    """

    def __init__(self, settings: ProducerPageSettings, view: ProducerView, log: EventLog) -> None:
        self._settings = settings
        self._view = view
        self._log = log
        self._pages: Final[dict[str, Callable[[], Awaitable[web.Response]]]] = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
        }
        limits = ConnectionLimits(
            header_timeout_ns=settings.header_timeout_ns,
            idle_timeout_ns=settings.idle_timeout_ns,
            answer_timeout_ns=settings.answer_timeout_ns,
            connections_max=settings.connections_max,
        )
        self._server = HttpServer(self._answer, limits)

    async def start(self) -> BindAddress:
        """Listen.

        Returns:
            The address in use, with its real port.

        Raises:
            ListenError: The address cannot be had.
        """
        address = BindAddress.parse(self._settings.bind_address)
        opened = open_listening_socket("metrics", address)
        await self._server.start(opened)
        return BindAddress(host=address.host, port=opened.getsockname()[1])

    async def stop(self) -> None:
        """Stop listening and close every connection."""
        await self._server.stop()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        page = self._pages.get(request.path)
        if page is None:
            return refusal(404, "404 page not found\n")
        try:
            return await page()
        except Exception:  # noqa: BLE001 - the HTTP boundary: logged, answered, never fatal
            self._log.exception("http_page_failed", path=request.path)
            return refusal(500, "internal error\n")

    async def _healthz(self) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self) -> web.Response:
        text = self._view.describe()
        if not self._view.is_ready():
            return refusal(503, f"not ready\n{text}")
        return web.Response(text=f"ok\n{text}")

    async def _metrics(self) -> web.Response:
        body = await self._view.render_metrics()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})
