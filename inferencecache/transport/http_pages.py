"""A plain HTTP listener with a few pages, each for any method; all else is 404."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from inferencecache.settings.address import BindAddress
from inferencecache.transport.http_answer import refusal
from inferencecache.transport.http_connections import ConnectionLimits, HttpServer
from inferencecache.transport.listen import open_listening_socket
from inferencecache.transport.structured_log import EventLog

Page = Callable[[], Awaitable[web.Response]]
"""Answers a request, whatever else it says."""


class PageSettings(Protocol):
    """Where to listen, and for how long whom."""

    @property
    def bind_address(self) -> str:
        """Address to listen on."""
        ...

    @property
    def header_timeout_ns(self) -> int:
        """Longest wait for the head of a request."""
        ...

    @property
    def idle_timeout_ns(self) -> int:
        """Longest wait for a further request."""
        ...

    @property
    def answer_timeout_ns(self) -> int:
        """Longest wait for a peer to take its answer."""
        ...

    @property
    def connections_max(self) -> int:
        """Most connections at a time."""
        ...


class PageListener:
    """Serves pages.

    Args:
        name: Of the listener, for errors.
        settings: Address and limits.
        pages: By path.
        log: Where a failing page is reported.
    """

    def __init__(
        self, name: str, settings: PageSettings, pages: Mapping[str, Page], log: EventLog
    ) -> None:
        self._name: Final = name
        self._bind_address = settings.bind_address
        self._pages = pages
        self._log = log
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
        address = BindAddress.parse(self._bind_address)
        opened = open_listening_socket(self._name, address)
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


async def alive() -> web.Response:
    """Answer ``/healthz``: whoever answers is alive."""
    return web.Response(text="ok\n")


def metrics_page(render: Callable[[], Awaitable[bytes]]) -> Page:
    """Return the page that shows what *render* makes."""

    async def page() -> web.Response:
        body = await render()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    return page
