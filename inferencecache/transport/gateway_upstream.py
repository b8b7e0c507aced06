"""Send a request on, and read what comes back, each at the pace of the slower side."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

from inferencecache.clock import NS_PER_S
from inferencecache.errors import InferenceCacheError
from inferencecache.settings.gateway_upstream import GatewayUpstreamSettings


class UpstreamError(InferenceCacheError):
    """A destination let the request down.

    Args:
        reason: How, without its address.
        is_slow: Whether it took too long.
    """

    def __init__(self, reason: str, *, is_slow: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_slow = is_slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a request is sent.

    Attributes:
        kind: ``worker``, ``provider`` or ``fallback``.
        url: Whole, escaped as it goes out.
        headers: Names and values, a key among them.
        tls: What the connection is made with; None takes the machine's authorities.
        server_name: In the certificate; None takes the host.
    """

    kind: str
    url: str
    headers: Sequence[tuple[str, str]] = field(repr=False)
    tls: ssl.SSLContext | None = None
    server_name: str | None = None


class Upstreams:
    """Connections to all destinations; made within a running loop.

    Args:
        settings: How long everything may take.
    """

    def __init__(self, settings: GatewayUpstreamSettings) -> None:
        connect_s = settings.connect_timeout_ns / NS_PER_S
        self._first_byte_s = settings.first_byte_timeout_ns / NS_PER_S
        self._silence_s = settings.silence_timeout_ns / NS_PER_S
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,  # each request has one, and the listener bounds those
                keepalive_timeout=settings.keepalive_ns / NS_PER_S,
            ),
            timeout=aiohttp.ClientTimeout(total=None, connect=connect_s, sock_connect=connect_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def send(
        self, target: Target, chunks: AsyncIterator[bytes], total_bytes: int | None
    ) -> aiohttp.ClientResponse:
        """Send a request; return its answer once the head is there.

        Args:
            target: Where to.
            chunks: The body.
            total_bytes: Its length; None sends it in chunks.

        Raises:
            UpstreamError: There is no answer.
        """
        headers = [*target.headers, ("Accept-Encoding", "identity")]
        if total_bytes is not None:
            headers.append(("Content-Length", str(total_bytes)))
        try:
            async with asyncio.timeout(self._first_byte_s):
                return await self._session.post(
                    URL(target.url, encoded=True),
                    headers=headers,
                    data=chunks if total_bytes != 0 else b"",
                    allow_redirects=False,
                    ssl=True if target.tls is None else target.tls,
                    server_hostname=target.server_name,
                )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _failed(error) from None

    async def first_chunk(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the beginning of an answer's body; empty for a body of nothing.

        Raises:
            UpstreamError: It does not come.
        """
        return await _read(response, self._first_byte_s)

    async def next_chunk(self, response: aiohttp.ClientResponse) -> bytes:
        """Return what follows; empty at the end.

        Raises:
            UpstreamError: The answer is cut off, or silent for too long.
        """
        return await _read(response, self._silence_s)


async def _read(response: aiohttp.ClientResponse, timeout_s: float) -> bytes:
    try:
        async with asyncio.timeout(timeout_s):
            return await response.content.readany()
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise _failed(error) from None


def _failed(error: aiohttp.ClientError | OSError | ValueError) -> UpstreamError:
    """Return *error* without the address that the library puts into it."""
    is_slow = isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError)
    return UpstreamError("no answer in time" if is_slow else type(error).__name__, is_slow=is_slow)
