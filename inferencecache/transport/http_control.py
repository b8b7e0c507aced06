"""The control listener: authentication, methods, limits, and the boundary for what goes wrong.

A request passes these points in order: is there such a path, may the sender come in, is there
room, is the method right, does the body fit and arrive in time. Then its page makes the answer.
So nobody who may not come in takes the room of those who may.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from aiohttp import ClientError, web
from aiohttp.http_exceptions import HttpProcessingError

from inferencecache.clock import NS_PER_S
from inferencecache.settings.address import BindAddress
from inferencecache.settings.control import ControlSettings
from inferencecache.transport.auth import REFUSALS, Attempt, Authenticator, AuthResult
from inferencecache.transport.auth_peers import peer_of
from inferencecache.transport.http_answer import refusal
from inferencecache.transport.http_connections import HttpServer
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.tls_names import http_peer_names


class PageRequest(NamedTuple):
    """What a page gets.

    Attributes:
        body: All of it; empty for pages that take none.
        query: The last value of each name.
    """

    body: bytes
    query: Mapping[str, str]


Page = Callable[[PageRequest], Awaitable[web.Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One path.

    Attributes:
        methods: Those it takes, as shown in an Allow header.
        page: Makes the answer.
        authenticator: Decides who may use it; None lets everybody.
        count: Told the result of each authentication.
        body_bytes_max: Largest body; 0 for pages that take none, whose bodies are ignored.
        too_large: The answer to a larger one.
    """

    methods: tuple[str, ...]
    page: Page
    authenticator: Authenticator | None
    count: Callable[[AuthResult], None]
    body_bytes_max: int = 0
    too_large: str = ""


class _BodyError(Exception):
    """A body that is not taken.

    Args:
        status: The answer's status.
        text: The answer's body.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class ControlListener:
    """Serves the control surface.

    Args:
        settings: Address and limits.
        endpoints: What is served, by path.
        log: Where a failing page is reported.
        tls: The context to serve with; None serves plain HTTP.
    """

    def __init__(
        self,
        settings: ControlSettings,
        endpoints: Mapping[str, Endpoint],
        log: EventLog,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._endpoints: Final = dict(endpoints)
        self._log = log
        self._tls = tls
        self._running = 0
        self._server = HttpServer("snapshot", self._answer, settings)

    async def start(self) -> BindAddress:
        """Listen and return the address in use, with its real port.

        Raises:
            ListenError: The address cannot be had.
        """
        return await self._server.start(self._tls)

    async def stop(self) -> None:
        """Stop listening and close every connection."""
        await self._server.stop()

    async def end_certified(self) -> int:
        """Make all clients with certificates connect again; return how many there were."""
        return self._server.end_certified()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        endpoint = self._endpoints.get(request.path)
        if endpoint is None:
            return refusal(404, "404 page not found\n")
        try:
            refused = await _authenticate(request, endpoint)
            return refused if refused is not None else await self._admit(request, endpoint)
        except Exception:  # noqa: BLE001 - the HTTP boundary: logged, answered, never fatal
            self._log.exception("control_page_failed", path=request.path)
            return refusal(500, "internal error\n")

    async def _admit(self, request: web.BaseRequest, endpoint: Endpoint) -> web.Response:
        """Give a request that may come in one of the places, if there is one."""
        if self._running >= self._settings.requests_max:
            return refusal(503, "too many requests\n", {"Retry-After": "1"})
        self._running += 1
        try:
            return await self._page(request, endpoint)
        finally:
            self._running -= 1

    async def _page(self, request: web.BaseRequest, endpoint: Endpoint) -> web.Response:
        """Let the request through to its page, or say why not."""
        if request.method not in endpoint.methods:
            return refusal(405, "method not allowed\n\n", {"Allow": ", ".join(endpoint.methods)})
        try:
            body = await self._body(request, endpoint) if endpoint.body_bytes_max else b""
        except _BodyError as error:
            answer = refusal(error.status, error.text)
            answer.force_close()
            return answer
        return await endpoint.page(PageRequest(body, dict(request.query)))

    async def _body(self, request: web.BaseRequest, endpoint: Endpoint) -> bytes:
        """Return the whole body.

        Raises:
            _BodyError: It is too large, too slow or broken.
        """
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        body = bytearray()
        try:
            async with asyncio.timeout(self._settings.body_timeout_ns / NS_PER_S):
                async for chunk in request.content.iter_any():
                    body += chunk
                    if len(body) > endpoint.body_bytes_max:
                        raise _BodyError(400, endpoint.too_large)
        except TimeoutError as error:
            raise _BodyError(408, "the body did not arrive in time\n") from error
        except (ClientError, HttpProcessingError, OSError) as error:
            raise _BodyError(400, "the body cannot be read\n") from error
        return bytes(body)


async def _authenticate(request: web.BaseRequest, endpoint: Endpoint) -> web.Response | None:
    """Return how to refuse the sender, None to let it in."""
    if endpoint.authenticator is None:
        return None
    attempt = _attempt(request)
    result = AuthResult.ERROR
    try:
        result = await endpoint.authenticator.check(attempt)
    finally:
        endpoint.count(result)
    if result is AuthResult.OK:
        return None
    headers = {}
    if result is AuthResult.THROTTLED:
        headers["Retry-After"] = str(endpoint.authenticator.retry_after_s(attempt))
    return refusal(*REFUSALS[result], headers)


def _attempt(request: web.BaseRequest) -> Attempt:
    peer: Any = None
    certificate: Any = None
    if request.transport is not None:
        peer = request.transport.get_extra_info("peername")
        certificate = request.transport.get_extra_info("peercert")
    return Attempt(
        authorization=request.headers.get("Authorization", ""),
        names=http_peer_names(certificate),
        peer=peer_of(str(peer[0])) if peer else "",
    )
