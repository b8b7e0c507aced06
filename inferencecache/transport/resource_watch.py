"""Tell when a directory may have changed: by the system's notices, and now and then anyway.

Theory of operation: notices say that something happens, not what; whoever is told looks for
himself. They belong to the directory and not to its name, so they end when another directory takes
the name, as when it is made anew or a link on the way to it is switched. That is looked for often,
which costs one look at the name. Notices can be missing altogether, from a network file system,
say, so the rescan interval ends every wait.

Rules of this file: the directory that is watched is kept open, so that no other can be mistaken
for it; file systems give its number away as soon as it is free.
"""

import asyncio
import os
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
        self._held: int | None = None

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
                await self._is_told_or_replaced()
        self._changed.clear()
        if await asyncio.to_thread(self._is_another):
            await self._begin_anew()
            # Whoever has made it is likely to be filling it.
            await asyncio.sleep(self._settings.debounce_ns / NS_PER_S)
        elif not self.is_watching:
            await self._begin_anew()

    async def _is_told_or_replaced(self) -> None:
        """Return at a notice, or when the name stands for another directory."""
        interval_s = self._settings.name_check_interval_ns / NS_PER_S
        while not self._changed.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(interval_s):
                    await self._changed.wait()
            if await asyncio.to_thread(self._is_another):
                return

    async def _begin_anew(self) -> None:
        """Watch the directory that has the name now; none there is looked for again and again."""
        await self._end()
        self._held = await asyncio.to_thread(self._open)
        if self._held is not None:
            self._watching = asyncio.create_task(self._watch(), name="resource-watch")
            await asyncio.sleep(0)  # the watch exists before anybody looks at the files

    async def _end(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _open(self) -> int | None:
        try:
            return os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None

    def _is_another(self) -> bool:
        """Return whether the name stands for another directory than the one that is watched."""
        try:
            named = self._directory.stat()
        except OSError:
            return self._held is not None
        return self._held is None or not os.path.samestat(named, os.fstat(self._held))

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
