"""The public HTTP listener: ``/healthz``, ``/readyz``, ``/metrics`` by any method, nothing else."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from inferencecache.transport.http_answer import refusal
from inferencecache.transport.http_connections import ListenerSettings
from inferencecache.transport.http_pages import PageListener, alive, metrics_page
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

    async def readyz(self) -> web.Response:
        """Answer ``/readyz``."""
        state = {CACHE_STATE_HEADER: "warm" if self.is_warm() else "cold"}
        if not self.is_ready():
            return refusal(503, "not ready\n\n", state)
        return web.Response(text="ok\n", headers=state)


def public_listener(settings: ListenerSettings, view: PublicView, log: EventLog) -> PageListener:
    """Return a listener that serves the public pages over plain HTTP.

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
    return PageListener("http", settings, pages, log)
