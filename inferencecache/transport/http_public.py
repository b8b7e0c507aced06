"""The public HTTP listener: ``/healthz``, ``/readyz``, ``/metrics`` by any method, nothing else."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from inferencecache.settings.address import BindAddress
from inferencecache.settings.http import HttpSettings
from inferencecache.transport.http_connections import ConnectionLimits, HttpServer
from inferencecache.transport.listen import open_listening_socket
from inferencecache.transport.structured_log import EventLog

CACHE_STATE_HEADER: Final = "X-Inference-Cache-State"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicView:
    """What the listener may show of the server.

    Attributes:
        is_ready: Whether the server takes work.
        is_warm: Whether any report has arrived since the start.
        render_metrics: Makes the metrics page.
    """

    is_ready: Callable[[], bool]
    is_warm: Callable[[], bool]
    render_metrics: Callable[[], Awaitable[bytes]]


class PublicListener:
    """Serves the public pages over plain HTTP.

    Args:
        settings: Address and time limits.
        view: What to show.
        log: Where a failing page is reported.
    """

    def __init__(self, settings: HttpSettings, view: PublicView, log: EventLog) -> None:
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
        opened = open_listening_socket("http", address)
        await self._server.start(opened)
        return BindAddress(host=address.host, port=opened.getsockname()[1])

    async def stop(self) -> None:
        """Stop listening and close every connection."""
        await self._server.stop()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        page = self._pages.get(request.path)
        if page is None:
            return _refusal(404, "404 page not found\n")
        try:
            return await page()
        except Exception:  # noqa: BLE001 - the HTTP boundary: logged, answered, never fatal
            self._log.exception("http_page_failed", path=request.path)
            return _refusal(500, "internal error\n")

    async def _healthz(self) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self) -> web.Response:
        state = {CACHE_STATE_HEADER: "warm" if self._view.is_warm() else "cold"}
        if not self._view.is_ready():
            return _refusal(503, "not ready\n\n", state)
        return web.Response(text="ok\n", headers=state)

    async def _metrics(self) -> web.Response:
        body = await self._view.render_metrics()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


def _refusal(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status,
        text=text,
        headers={"X-Content-Type-Options": "nosniff", **(headers or {})},
    )
