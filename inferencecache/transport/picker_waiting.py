"""Let requests wait for a calmer moment, and let them in one by one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.picker.choosing import Deferred, FairQueue
from inferencecache.transport import picker_catalog as catalog
from inferencecache.transport.metric_cells import Counts, Family


class DeferredRequests:
    """A waiting room.

    Whoever is let in holds the door until it has been placed, so that its load is seen before the
    next one is asked in.

    Args:
        waiting_max: Most that wait at a time.
        clock: Monotonic time.
    """

    def __init__(self, waiting_max: int, clock: Clock) -> None:
        self._queue = FairQueue(waiting_max)
        self._clock = clock
        self._waiting: dict[Deferred, asyncio.Future[bool]] = {}
        self._is_door_held = False
        self._is_closed = False
        self._results = Counts()

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._queue)

    @asynccontextmanager
    async def entered(self, deferred: Deferred) -> AsyncIterator[bool]:
        """Wait; see :class:`WaitingRoom`."""
        if not len(self._queue) and not self._is_door_held and deferred.is_calm():
            yield True
            return
        is_let_in = await self._waited(deferred)
        self._results.add(("passed" if is_let_in else "shed",))
        try:
            yield is_let_in
        finally:
            if is_let_in:
                self._is_door_held = False
                self.look()

    def look(self) -> None:
        """Let in whoever may go on by now; to be called whenever there may be room."""
        while not self._is_door_held:
            deferred = self._queue.take()
            if deferred is None:
                return
            let_in = self._waiting.pop(deferred)
            if not let_in.done():
                self._is_door_held = True
                let_in.set_result(True)

    def close(self) -> None:
        """Let nobody wait any more: the server is about to end, and others may take the request."""
        self._is_closed = True
        for deferred, let_in in self._waiting.items():
            self._queue.remove(deferred)
            if not let_in.done():
                let_in.set_result(False)
        self._waiting.clear()

    def families(self) -> list[Family]:
        """Return a copy of all numbers."""
        return [
            Family(catalog.DEFERRED, {(): len(self._queue)}),
            Family(catalog.DEFERRALS, self._results.rows()),
        ]

    async def _waited(self, deferred: Deferred) -> bool:
        left_ns = deferred.until_ns - self._clock.monotonic_ns()
        if self._is_closed or left_ns <= 0 or not self._queue.add(deferred):
            return False
        let_in = self._waiting[deferred] = asyncio.get_running_loop().create_future()
        self.look()
        try:
            await asyncio.wait([let_in], timeout=left_ns / NS_PER_S)
        except asyncio.CancelledError:
            if self._left(deferred, let_in):
                self._is_door_held = False
                self.look()
            raise
        return self._left(deferred, let_in)

    def _left(self, deferred: Deferred, let_in: asyncio.Future[bool]) -> bool:
        """Take a request out that waits no longer; return whether it was let in."""
        if let_in.done():
            return let_in.result()
        let_in.cancel()
        self._waiting.pop(deferred, None)
        self._queue.remove(deferred)
        return False
