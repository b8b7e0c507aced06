"""Bound what HTTP connections may hold: how many there are, and for how long without a request.

aiohttp limits the time between two requests and nothing before the first, so each connection has a
watch between the socket and aiohttp's own protocol. It knows two things: bytes that arrive, from
:mod:`asyncio`, and requests that begin, from the handler around the pages. A request begins once
its head is complete.

Connections are accepted here and not by the event loop's own servers, because those tell of a TLS
connection only when it has shaken hands, and until then it would count for nothing.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from inferencecache.clock import NS_PER_S
from inferencecache.settings.address import BindAddress
from inferencecache.transport.auth_peers import peer_of
from inferencecache.transport.http_places import Places
from inferencecache.transport.listen import open_listening_socket

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_ACCEPT_PAUSE_S: Final = 0.1
"""After a connection could not be accepted, because too many files are open, say."""

_SHUTDOWN_S: Final = 1.0
_UNREAD_BODY_S: Final = 1.0
"""After an answer, time for the rest of a body that its page has not read."""

_LAST_CHANCE_S: Final = 0.1
"""After the limit, time for a request that arrived while the event loop was held."""


class ListenerSettings(Protocol):
    """Where an HTTP listener listens, and what a connection may hold."""

    @property
    def bind_address(self) -> str:
        """Address to listen on."""
        ...

    @property
    def header_timeout_ns(self) -> int:
        """Time for a request's head, from the connection's start or the head's first byte.

        For TLS also the time for the handshake.
        """
        ...

    @property
    def idle_timeout_ns(self) -> int:
        """Time between two requests."""
        ...

    @property
    def answer_timeout_ns(self) -> int:
        """Time for a peer to take an answer that waits for it."""
        ...

    @property
    def connections_max(self) -> int:
        """Open connections, those in a TLS handshake too; peers share them."""
        ...


class HttpServer:
    """Serves requests on one listening socket, within limits.

    Args:
        name: Of the listener, for errors.
        answer: Makes the answer to a request.
        settings: Where, and what connections may hold.
        ends_with_peer: Whether an answer in the making is cancelled when its connection ends.
    """

    def __init__(
        self,
        name: str,
        answer: Answer,
        settings: ListenerSettings,
        *,
        ends_with_peer: bool = False,
    ) -> None:
        self._ends_with_peer = ends_with_peer
        self._name = name
        self._answer_page = answer
        self._settings = settings
        self._places = Places(settings.connections_max)
        self._server: web.Server | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._opened: socket.socket | None = None

    @property
    def connections(self) -> int:
        """Open connections, those in a TLS handshake too."""
        return len(self._places)

    async def start(self, tls: ssl.SSLContext | None = None) -> BindAddress:
        """Listen.

        Args:
            tls: The context to serve with; None serves plain HTTP.

        Returns:
            The address in use, with its real port.

        Raises:
            ListenError: The address cannot be had.
        """
        address = BindAddress.parse(self._settings.bind_address)
        self._opened = opened = open_listening_socket(self._name, address)
        self._server = _Server(
            self._answer,
            handler_cancellation=self._ends_with_peer,
            access_log=None,
            logger=_LOG,
            keepalive_timeout=self._settings.idle_timeout_ns / NS_PER_S,
            lingering_time=_UNREAD_BODY_S,
            auto_decompress=False,  # no page takes a compressed body, and most take none
        )
        self._accepting = asyncio.create_task(
            self._accept(opened, tls, self._server), name="http-accept"
        )
        return BindAddress(host=address.host, port=opened.getsockname()[1])

    async def stop(self) -> None:
        """Stop listening and close every connection."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait({self._accepting})
            self._accepting = None
        if self._opened is not None:  # a task that is cancelled before it began closes nothing
            self._opened.close()
            self._opened = None
        if self._server is not None:
            self._server.pre_shutdown()
            await self._server.shutdown(_SHUTDOWN_S)
            self._server = None
        for place in self._places:
            place.end()

    def end_certified(self) -> int:
        """End every connection that has shown a certificate; return how many there were.

        Those in a handshake end with it if they show one, which is checked as it was when the
        handshake began.
        """
        return sum([place.end_certified() for place in self._places])

    async def _accept(
        self, opened: socket.socket, tls: ssl.SSLContext | None, server: web.Server
    ) -> None:
        """Accept connections for ever; each goes its own way from there."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(opened)
            except OSError:
                await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            watch = _Watch(server(), peer_of(str(address[0])), self._places, self._settings)
            if self._places.take(watch):
                watch.open(accepted, tls)
            else:
                accepted.close()

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


class _Handler(web.RequestHandler):
    """aiohttp's protocol, but for the words of an answer to what is no request."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - quotes the head, which may hold a token
    ) -> web.StreamResponse:
        """Say that it is none, and close; a page that lost its peer is no error, and no answer."""
        if isinstance(exc, ConnectionError) and _is_gone(request):
            raise exc  # which the library takes for the end of the connection
        answer = super().handle_error(request, status, exc, "the request cannot be read\n")
        answer.headers["X-Content-Type-Options"] = "nosniff"
        return answer


def _is_gone(request: web.BaseRequest) -> bool:
    return request.transport is None or request.transport.is_closing()


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Handler(self, loop=self._loop, **self._kwargs)


class _Watch(asyncio.Protocol):
    """One connection on its way to aiohttp's protocol.

    Args:
        inner: aiohttp's protocol.
        peer: Whose connection it is.
        places: All open connections; it leaves them when it ends.
        limits: What it may hold.
    """

    def __init__(
        self, inner: asyncio.Protocol, peer: str, places: Places, limits: ListenerSettings
    ) -> None:
        self.peer = peer
        self._inner = inner
        self._places = places
        self._header_timeout_s = limits.header_timeout_ns / NS_PER_S
        self._answer_timeout_s = limits.answer_timeout_ns / NS_PER_S
        self._opening: asyncio.Task[None] | None = None
        self._transport: asyncio.BaseTransport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._answer_timer: asyncio.TimerHandle | None = None
        self._running = 0
        self._is_too_late = False

    @property
    def is_busy(self) -> bool:
        """Whether a request is running."""
        return self._running > 0

    def open(self, accepted: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Begin to speak on *accepted*."""
        self._opening = asyncio.create_task(self._open(accepted, tls))

    def end(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            _abort(self._transport)
        elif self._opening is not None:
            self._opening.cancel()

    def end_certified(self) -> bool:
        """Close the connection if its peer has shown a certificate, or once it does."""
        if self._transport is None:
            self._is_too_late = True
            return False
        is_certified = bool(self._transport.get_extra_info("peercert"))
        if is_certified:
            self.end()
        return is_certified

    async def _open(self, accepted: socket.socket, tls: ssl.SSLContext | None) -> None:
        accepted.setblocking(False)  # noqa: FBT003 - the library's own
        try:
            with suppress(OSError):  # what goes wrong with a handshake, or takes too long
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: self,
                    accepted,
                    ssl=tls,
                    ssl_handshake_timeout=None if tls is None else self._header_timeout_s,
                )
        finally:
            self._opening = None
            if self._transport is None:
                accepted.close()
                self._places.leave(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._expect_head()
        self._inner.connection_made(transport)
        if self._is_too_late:
            self.end_certified()

    def connection_lost(self, exc: Exception | None) -> None:
        self._places.leave(self)
        if self._transport is None:
            return
        self._transport = None
        self._stop_timer()
        self._stop_answer_timer()
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
            loop = asyncio.get_running_loop()
            self._answer_timer = loop.call_later(self._answer_timeout_s, self.end)
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._stop_answer_timer()
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

    def _stop_answer_timer(self) -> None:
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None


_NO_HTTP: Final = (HttpProcessingError, web.RequestPayloadError)
"""A head, and a body; which of the two a body raises is up to aiohttp's parser."""


def _is_of_ours(record: logging.LogRecord) -> bool:
    """Leave out what is no HTTP: peers send as much of it as they like, and it would be quoted."""
    return not (record.exc_info and isinstance(record.exc_info[1], _NO_HTTP))


_LOG: Final = logging.getLogger(__name__)
_LOG.addFilter(_is_of_ours)


def _abort(transport: asyncio.BaseTransport) -> None:
    """Close at once; closing in good order would wait for the peer, over TLS for half a minute."""
    # Every transport of a stream can do so, whatever event loop it is of and whatever its class.
    cast("asyncio.Transport", transport).abort()
