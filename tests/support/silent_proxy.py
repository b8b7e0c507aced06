"""A TCP proxy that can stop forwarding without closing anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self


class SilentProxy:
    """Forwards bytes both ways until told to fall silent.

    Args:
        upstream: Address of the server behind it, ``host:port``.
    """

    def __init__(self, upstream: str) -> None:
        self._host, _, self._port = upstream.rpartition(":")
        self._is_silent = False
        self._pumps: set[asyncio.Task[None]] = set()
        self.target = ""

    @classmethod
    @asynccontextmanager
    async def before(cls, upstream: str) -> AsyncIterator[Self]:
        """Run a proxy in front of *upstream* for the length of a block."""
        proxy = cls(upstream)
        server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
        proxy.target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield proxy
        finally:
            server.close()
            for pump in proxy._pumps:
                pump.cancel()
            await asyncio.gather(*proxy._pumps, return_exceptions=True)

    def fall_silent(self) -> None:
        """Swallow every byte from now on, in both directions."""
        self._is_silent = True

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._host, int(self._port))
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            self._pumps.add(asyncio.create_task(self._pump(source, sink)))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                if not self._is_silent:
                    sink.write(data)
                    await sink.drain()
        except ConnectionError:
            pass
        finally:
            sink.close()
