"""Follow certificate files while they change, and end connections nobody vouches for any more.

A connection is checked once, when it is made. So when an authority of clients is taken away, its
clients would keep what they have: every connection of that listener is ended, and those that are
still welcome come back.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from inferencecache.clock import NS_PER_S
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.tls_files import TlsFiles

EndConnections = Callable[[], Awaitable[int]]
"""Ends every connection of a listener that a certificate may have opened; returns how many."""


class Rotation:
    """Keeps the material of listeners new.

    Args:
        files: Of each listener, by its name.
        end_connections: For each of these listeners.
        interval_ns: Time between two looks, in nanoseconds.
        log: Told when connections are ended.
    """

    def __init__(
        self,
        files: Mapping[str, TlsFiles],
        end_connections: Mapping[str, EndConnections],
        interval_ns: int,
        log: EventLog,
    ) -> None:
        self._files = files
        self._end_connections = end_connections
        self._interval_s = interval_ns / NS_PER_S
        self._log = log
        self._looking = asyncio.Lock()

    async def run(self) -> None:
        """Look again and again, for ever."""
        while True:
            await asyncio.sleep(self._interval_s)
            await self.look()

    async def look(self) -> None:
        """Look at the files of every listener once, after any look that has begun."""
        async with self._looking:
            for listener, files in self._files.items():
                await self._look_at(listener, files)

    async def _look_at(self, listener: str, files: TlsFiles) -> None:
        removals = files.removals
        await asyncio.to_thread(files.look)
        if files.removals > removals:
            ended = await self._end_connections[listener]()
            self._log.warning(
                "client_authority_removed", listener=listener, connections_ended=ended
            )
