"""Bound what HTTP connections may hold: how many there are, and for how long without a request.

aiohttp limits the time between two requests and nothing before the first, so each connection has a
watch between the socket and aiohttp's own protocol. It knows two things: bytes that arrive, from
:mod:`asyncio`, and requests that begin, from the handler around the pages. A request begins once
its head is complete.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from inferencecache.clock import NS_PER_S

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_BACKLOG: Final = 512
_SHUTDOWN_S: Final = 1.0
_LAST_CHANCE_S: Final = 0.1
"""After the limit, time for a request that arrived while the event loop was held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What a connection may hold.

    Attributes:
        header_timeout_ns: Time for a request's head, from the connection's start or the head's
            first byte; for TLS also the time for the handshake.
        idle_timeout_ns: Time between two requests.
        connections_max: Open connections; further ones are closed at once.
    """

    header_timeout_ns: int
    idle_timeout_ns: int
    connections_max: int


class HttpServer:
    """Serves requests on one listening socket, within limits.

    Args:
        answer: Makes the answer to a request.
        limits: What connections may hold.
        options: Further options of aiohttp's ``web.Server``.
    """

    def __init__(self, answer: Answer, limits: ConnectionLimits, **options: Any) -> None:  # noqa: ANN401 - aiohttp's own
        self._answer_page = answer
        self._limits = limits
        self._options = options
        self._open: set[_Watch] = set()
        self._server: web.Server | None = None
        self._listening: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """Open connections, those in a TLS handshake not counted."""
        return len(self._open)

    async def start(self, opened: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Serve what connects to *opened*, over TLS if there is a context for it."""
        server = self._server = web.Server(
            self._answer,
            access_log=None,
            keepalive_timeout=self._limits.idle_timeout_ns / NS_PER_S,
            **self._options,
        )
        header_timeout_s = self._limits.header_timeout_ns / NS_PER_S
        self._listening = await asyncio.get_running_loop().create_server(
            lambda: _Watch(server(), self._open, self._limits.connections_max, header_timeout_s),
            sock=opened,
            ssl=tls,
            ssl_handshake_timeout=header_timeout_s if tls is not None else None,
            backlog=_BACKLOG,
        )

    async def stop(self) -> None:
        """Stop listening and close every connection."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        if self._server is not None:
            await asyncio.sleep(0)  # connections that were accepted last become known
            self._server.pre_shutdown()
            await self._server.shutdown(_SHUTDOWN_S)
            self._server = None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        transport = request.transport
        watch = transport.get_protocol() if transport is not None else None
        if not isinstance(watch, _Watch):  # the connection has gone
            return await self._answer_page(request)
        watch.request_began()
        try:
            return await self._answer_page(request)
        finally:
            watch.request_ended()


class _Watch(asyncio.Protocol):
    """One connection on its way to aiohttp's protocol.

    Args:
        inner: aiohttp's protocol.
        opened: All open connections; it puts itself there.
        connections_max: Most of them.
        header_timeout_s: Seconds for the head of a request.
    """

    def __init__(
        self,
        inner: asyncio.Protocol,
        opened: set["_Watch"],
        connections_max: int,
        header_timeout_s: float,
    ) -> None:
        self._inner = inner
        self._opened = opened
        self._connections_max = connections_max
        self._header_timeout_s = header_timeout_s
        self._transport: asyncio.BaseTransport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._running = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if len(self._opened) >= self._connections_max:
            _abort(transport)
            return
        self._opened.add(self)
        self._transport = transport
        self._expect_head()
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is None:
            return
        self._transport = None
        self._opened.discard(self)
        self._stop_timer()
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            return
        if not self._running and self._timer is None:
            self._expect_head()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._transport is not None else None

    def pause_writing(self) -> None:
        if self._transport is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._transport is not None:
            self._inner.resume_writing()

    def request_began(self) -> None:
        """Note that the head of a request is complete."""
        self._running += 1
        self._stop_timer()

    def request_ended(self) -> None:
        """Note that a request is answered."""
        self._running -= 1

    def _expect_head(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._header_timeout_s, self._give_last_chance)

    def _give_last_chance(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LAST_CHANCE_S, self._close)

    def _close(self) -> None:
        self._timer = None
        if self._transport is not None:
            _abort(self._transport)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _abort(transport: asyncio.BaseTransport) -> None:
    """Close at once; closing in good order would wait for the peer, over TLS for half a minute."""
    if isinstance(transport, asyncio.Transport):
        transport.abort()
    else:
        transport.close()
