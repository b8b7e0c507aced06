"""The producer's own pages: ``/healthz``, ``/readyz``, ``/metrics``."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from inferencecache.transport.http_answer import refusal
from inferencecache.transport.http_connections import ListenerSettings
from inferencecache.transport.http_pages import PageListener, alive, metrics_page
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

    async def readyz(self) -> web.Response:
        """Answer ``/readyz``."""
        text = self.describe()
        if not self.is_ready():
            return refusal(503, f"not ready\n{text}")
        return web.Response(text=f"ok\n{text}")


def producer_listener(
    settings: ListenerSettings, view: ProducerView, log: EventLog
) -> PageListener:
    """Return a listener that serves the pages over plain HTTP, within the limits of *settings*.

    Args:
        settings: Address and limits.
        view: What to show.
        log: Where a failing page is reported.
    """
    pages = {
        "/healthz": alive,
        "/readyz": view.readyz,
        "/metrics": metrics_page(view.render_metrics),
    }
    return PageListener("metrics", settings, pages, log)
