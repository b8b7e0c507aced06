"""A body on its way in, from the client, and on its way out, from the picker."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from inferencecache.clock import NS_PER_S
from inferencecache.errors import InferenceCacheError
from inferencecache.gateway import (
    BAD_UPLOAD,
    SILENT_UPLOAD,
    TOO_LARGE,
    KeptBody,
    Refusal,
    ReplayRoom,
)
from inferencecache.settings.gateway import GatewayRequestSettings
from inferencecache.transport.gateway_fault import RefusedError
from inferencecache.transport.gateway_picker import PickerCallError, Pull

_BROKEN: Final = (web.RequestPayloadError, HttpProcessingError)


class ClientBody:
    """The body of a request: read once, and kept for another attempt as long as there is room.

    Args:
        request: Whose body it is.
        settings: How it is read.
        room: Where it is kept.

    Attributes:
        declared_bytes: Its length as the client has announced it; None without a word.
        refusal: Why it could not be read to its end; None so far.
    """

    def __init__(
        self, request: web.BaseRequest, settings: GatewayRequestSettings, room: ReplayRoom
    ) -> None:
        self.declared_bytes = request.content_length
        self.refusal: Refusal | None = None
        self._content = request.content
        self._settings = settings
        self._kept = KeptBody(room)
        self._received_bytes = 0

    @property
    def is_replayable(self) -> bool:
        """Whether all that was read so far can be read again."""
        return self._kept.is_whole

    def let_go(self) -> None:
        """Free what is kept."""
        self._kept.let_go()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield what is kept, then the rest as it arrives.

        Raises:
            RefusedError: The client stops, sends too much, or what is no HTTP.
        """
        for chunk in list(self._kept):
            yield chunk
        while chunk := await self._read():
            yield chunk

    async def _read(self) -> bytes:
        if self._content.at_eof():  # told again and again, the library takes it for a mistake
            return b""
        try:
            async with asyncio.timeout(self._settings.upload_idle_ns / NS_PER_S):
                chunk = await self._content.read(self._settings.chunk_bytes)
        except TimeoutError:
            raise self._refused(SILENT_UPLOAD) from None
        except _BROKEN:
            raise self._refused(BAD_UPLOAD) from None
        self._received_bytes += len(chunk)
        if self._received_bytes > self._settings.body_bytes_max:
            raise self._refused(TOO_LARGE)
        self._kept.keep(chunk)
        return chunk

    def _refused(self, refusal: Refusal) -> RefusedError:
        self.refusal = refusal
        return RefusedError(refusal)


class ShortPullError(InferenceCacheError):
    """The picker did not hand out what it had announced.

    Args:
        detail: How so.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class PulledBody:
    """The body as its destination wants it: pulled once, counted, at the destination's pace.

    Args:
        pull: The call.
        total_bytes: What the picker has announced.

    Attributes:
        failure: Why it did not come whole; empty so far.
    """

    def __init__(self, pull: Pull, total_bytes: int) -> None:
        self.failure = ""
        self.total_bytes = total_bytes
        self._pull = pull
        self._left_bytes = total_bytes
        self._first: bytes | None = None

    async def open(self) -> None:
        """Wait for the first chunk, so that nothing is dispatched that cannot be pulled.

        Raises:
            ShortPullError: There is none.
        """
        self._first = await self._next()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield exactly what was announced.

        Raises:
            ShortPullError: It is less, or more.
        """
        chunk = self._first
        self._first = None
        while chunk is not None:
            yield chunk
            chunk = await self._next()

    def close(self) -> None:
        """Let go of what was not pulled."""
        self._pull.close()

    async def _next(self) -> bytes | None:
        try:
            chunk = await self._pull.next()
        except PickerCallError as error:
            raise self._failed(f"{error.status}: {error.detail}") from None
        self._left_bytes -= len(chunk or b"")
        if self._left_bytes < 0 or (chunk is None and self._left_bytes):
            off = "short" if self._left_bytes > 0 else "long"
            raise self._failed(f"too {off} by {abs(self._left_bytes)} bytes at least")
        return chunk

    def _failed(self, detail: str) -> ShortPullError:
        self.failure = detail
        return ShortPullError(detail)
