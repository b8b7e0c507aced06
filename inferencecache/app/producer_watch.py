"""Wait until something holds that only changes when somebody says so."""

import asyncio
from collections.abc import Callable


class Watched:
    """Wakes those who wait for a condition."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()

    def changed(self) -> None:
        """Let everybody look again."""
        for waiting in self._waiting:
            waiting.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return as soon as *holds* is true after a change; at once if it is."""
        waiting = asyncio.Event()
        self._waiting.add(waiting)
        try:
            while not holds():
                waiting.clear()
                await waiting.wait()
        finally:
            self._waiting.discard(waiting)
