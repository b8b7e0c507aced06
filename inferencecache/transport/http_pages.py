"""A plain HTTP listener with a few pages, each for any method; all else is 404."""

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from inferencecache.settings.address import BindAddress
from inferencecache.transport.http_answer import refusal
from inferencecache.transport.http_connections import HttpServer, ListenerSettings
from inferencecache.transport.structured_log import EventLog

Page = Callable[[], Awaitable[web.Response]]
"""Answers a request, whatever else it says."""


class PageListener:
    """Serves pages.

    Args:
        name: Of the listener, for errors.
        settings: Address and limits.
        pages: By path.
        log: Where a failing page is reported.
    """

    def __init__(
        self, name: str, settings: ListenerSettings, pages: Mapping[str, Page], log: EventLog
    ) -> None:
        self._pages = pages
        self._log = log
        self._server = HttpServer(name, self._answer, settings)

    async def start(self) -> BindAddress:
        """Listen and return the address in use, with its real port.

        Raises:
            ListenError: The address cannot be had.
        """
        return await self._server.start()

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
