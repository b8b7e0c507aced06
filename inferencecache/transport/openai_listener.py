"""Serve OpenAI-shaped paths over HTTP: documents, and answers that come event by event."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from aiohttp import web

from inferencecache.errors import InvalidRequestError
from inferencecache.settings.address import BindAddress
from inferencecache.settings.http import HttpSettings
from inferencecache.simulation.openai_answer import DONE, error_page
from inferencecache.transport.http_connections import HttpServer

BODY_BYTES_MAX: Final = 67_108_864
"""Largest body that is read."""

_BAD_REQUEST: Final = "BadRequestError"


class ModelGoneError(Exception):
    """Whoever was to answer has ended: the connection ends without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAiCall:
    """One request.

    Attributes:
        body: Its body.
        authorization: Its header of that name, or empty.
    """

    body: bytes
    authorization: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAiReply:
    """An answer in one document.

    Attributes:
        body: The document.
        status: Of the answer.
        content_type: What the document is.
    """

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"


OpenAiEvents = AsyncGenerator[bytes, None]
"""An answer that comes event by event."""

OpenAiPage = Callable[[OpenAiCall], Awaitable[OpenAiReply | OpenAiEvents]]
"""Makes an answer.

Raises:
    InvalidRequestError: The request is wrong; the client is told so.
    ModelGoneError: There will be no answer.
"""

OpenAiPages = Mapping[tuple[str, str], OpenAiPage]
"""By method and path."""


class OpenAiListener:
    """Serves pages at an address that it keeps when it is closed and opened again.

    Args:
        name: Of the listener, for errors.
        address: Where; port 0 takes a free one.
        pages: What there is.
    """

    def __init__(self, name: str, address: str, pages: OpenAiPages) -> None:
        self._name = name
        self._settings = HttpSettings(bind_address=address)
        self._pages = pages
        self._server: HttpServer | None = None

    @property
    def address(self) -> str:
        """Where it is reached; the port is a real one once it has been opened."""
        return self._settings.bind_address

    async def open(self) -> None:
        """Listen.

        Raises:
            ListenError: The address cannot be had.
        """
        self._server = HttpServer(self._name, self._answer, self._settings, ends_with_peer=True)
        address: BindAddress = await self._server.start()
        self._settings = replace(self._settings, bind_address=str(address))

    async def close(self) -> None:
        """Stop listening and end every connection; nothing if it is not open."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        page = self._pages.get((request.method, request.path))
        if page is None:
            return _refusal(404, "NotFoundError", "there is no such path")
        try:
            body = await _body_of(request)
            authorization = request.headers.get("Authorization", "")
            answer = await page(OpenAiCall(body=body, authorization=authorization))
            if isinstance(answer, OpenAiReply):
                return _response(answer)
            return await _streamed(request, answer)
        except InvalidRequestError as error:
            return _refusal(400, _BAD_REQUEST, str(error))
        except ModelGoneError:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)  # never leaves: its connection has ended


async def _body_of(request: web.BaseRequest) -> bytes:
    """Return the body.

    Raises:
        InvalidRequestError: It is too large.
    """
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > BODY_BYTES_MAX:
            raise InvalidRequestError(
                field="body", value="its length", allowed=f"at most {BODY_BYTES_MAX} bytes"
            )
    return bytes(body)


async def _streamed(request: web.BaseRequest, events: OpenAiEvents) -> web.StreamResponse:
    """Send *events* as they come."""
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    )
    try:
        await response.prepare(request)
        async for event in events:
            await response.write(event)
        await response.write(DONE)
        await response.write_eof()
    finally:
        await events.aclose()
    return response


def _response(reply: OpenAiReply) -> web.Response:
    headers = {"Content-Type": reply.content_type}
    return web.Response(status=reply.status, body=reply.body, headers=headers)


def _refusal(status: int, kind: str, text: str) -> web.Response:
    body = error_page(status, kind, text)
    return _response(OpenAiReply(status=status, body=body))
