"""Tell when a directory may have changed: by the system's notices, and now and then anyway.

Theory of operation: notices say that something happens, not what; whoever is told looks for
himself. They can be missing, from a network file system or behind a symbolic link, and they end
with the directory, so a look without notice follows after the rescan interval, and the watch is
begun anew when the directory is another one.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from watchfiles import awatch

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.resources import ResourceSettings


class DirectoryWatch:
    """Waits for changes of one directory.

    Args:
        settings: The directory, how long it must be quiet, and how often to look anyway.
    """

    def __init__(self, settings: ResourceSettings) -> None:
        self._settings = settings
        self._directory = Path(settings.directory)
        self._changed = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._watched: tuple[int, int] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch for the length of a ``with`` block."""
        try:
            await self._begin_anew()
            yield
        finally:
            await self._end()

    @property
    def is_watching(self) -> bool:
        """Whether the system tells of changes."""
        return self._watching is not None and not self._watching.done()

    async def wait(self) -> None:
        """Return when the directory may have changed since the last return."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.rescan_interval_ns / NS_PER_S):
                await self._changed.wait()
        self._changed.clear()
        identity = await asyncio.to_thread(self._identity)
        if not self.is_watching or self._watched != identity:
            await self._begin_anew()

    async def _begin_anew(self) -> None:
        """Watch the directory that has the name now; none there is looked for at each rescan."""
        await self._end()
        self._watched = await asyncio.to_thread(self._identity)
        if self._watched is not None:
            self._watching = asyncio.create_task(self._watch(), name="resource-watch")
            await asyncio.sleep(0)  # the watch exists before anybody looks at the files

    async def _end(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None

    def _identity(self) -> tuple[int, int] | None:
        """Return what tells the directory from another one of its name."""
        try:
            found = self._directory.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    async def _watch(self) -> None:
        """Set the event at each notice; ends when the directory cannot be watched."""
        with suppress(OSError, RuntimeError):
            async for _ in awatch(
                self._directory,
                watch_filter=None,
                step=self._settings.debounce_ns // NS_PER_MS,
                debounce=self._settings.debounce_max_ns // NS_PER_MS,
                recursive=False,
            ):
                self._changed.set()
