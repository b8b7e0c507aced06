"""A TCP proxy that tells when enough has been said, so that a test can act in the middle."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class CountingProxy:
    """Forwards bytes both ways.

    Args:
        upstream: ``host:port`` behind the proxy.
        reads: Reads from clients after which :attr:`busy` is set.

    Attributes:
        target: Where the proxy listens.
        busy: Set once clients have said enough.
    """

    def __init__(self, upstream: str, reads: int) -> None:
        self._host, self._port = upstream.rsplit(":", 1)
        self._reads_left = reads
        self.target = ""
        self.busy = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until either side ends it."""
        try:
            server_reader, server_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            self._forward(reader, server_writer, counts=True),
            self._forward(server_reader, writer, counts=False),
        )

    async def _forward(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, counts: bool
    ) -> None:
        try:
            while data := await source.read(65_536):
                sink.write(data)
                self._reads_left -= counts
                if self._reads_left <= 0:
                    self.busy.set()
        except ConnectionError:
            pass  # the other direction ends with it
        finally:
            sink.close()


@asynccontextmanager
async def counting_proxy(upstream: str, reads: int) -> AsyncIterator[CountingProxy]:
    """Run a proxy in front of *upstream* for the length of a block."""
    proxy = CountingProxy(upstream, reads)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    proxy.target = f"{host}:{port}"
    try:
        yield proxy
    finally:
        server.close()
