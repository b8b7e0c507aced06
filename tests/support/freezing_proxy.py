"""A TCP proxy that can stop forwarding without closing anything, like a dead network path."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class FreezingProxy:
    """Forwards between one client and a server until frozen."""

    def __init__(self, target: str) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.server_closed = asyncio.Event()
        self.address = ""

    def freeze(self) -> None:
        """Forward nothing any more."""
        self._flowing.clear()

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect one client to the server."""
        to_server = await asyncio.open_connection(self._host, self._port)
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(reader, to_server[1]))
                pumps.create_task(self._pump(to_server[0], writer, ends=self.server_closed))
        finally:
            for end in (writer, to_server[1]):
                end.close()
                with suppress(OSError):
                    await end.wait_closed()

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        ends: asyncio.Event | None = None,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                if self._flowing.is_set():
                    writer.write(data)
        if ends is not None:
            ends.set()
        writer.close()


@asynccontextmanager
async def freezing_proxy(target: str) -> AsyncIterator[FreezingProxy]:
    """Run a proxy in front of *target* for the length of the block."""
    proxy = FreezingProxy(target)
    listening = await asyncio.start_server(proxy.forward, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()
    proxy.address = f"{host}:{port}"
    try:
        yield proxy
    finally:
        listening.close()
