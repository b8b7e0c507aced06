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

    Whoever is let in counts until it has been placed, which may take as long as its prompt takes to
    be read: otherwise all that come meanwhile would find the same room.

    Args:
        waiting_max: Most that wait at a time.
        clock: Monotonic time.
    """

    def __init__(self, waiting_max: int, clock: Clock) -> None:
        self._queue = FairQueue(waiting_max)
        self._clock = clock
        self._waiting: dict[Deferred, asyncio.Future[bool]] = {}
        self._unplaced = 0
        self._is_closed = False
        self._results = Counts()

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._queue)

    @asynccontextmanager
    async def entered(self, deferred: Deferred) -> AsyncIterator[bool]:
        """Wait; see :class:`WaitingRoom`."""
        if not len(self._queue) and deferred.is_calm(self._unplaced):
            is_let_in = True
            self._unplaced += 1
        else:
            is_let_in = await self._waited(deferred)
            self._results.add(("passed" if is_let_in else "shed",))
        try:
            yield is_let_in
        finally:
            if is_let_in:
                self._placed()

    def look(self) -> None:
        """Let in whoever may go on by now; to be called whenever there may be room."""
        while (deferred := self._queue.take(self._unplaced)) is not None:
            let_in = self._waiting.pop(deferred)
            if not let_in.done():
                self._unplaced += 1
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
                self._placed()
            raise
        return self._left(deferred, let_in)

    def _placed(self) -> None:
        """Take note that one that was let in is placed, or gone, and look who is next."""
        self._unplaced -= 1
        self.look()

    def _left(self, deferred: Deferred, let_in: asyncio.Future[bool]) -> bool:
        """Take a request out that waits no longer; return whether it was let in."""
        if let_in.done():
            return let_in.result()
        let_in.cancel()
        self._waiting.pop(deferred, None)
        self._queue.remove(deferred)
        return False
