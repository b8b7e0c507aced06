"""Let work that can wait begin in quiet turns of the event loop.

Everything that is ready has its part in each turn of a loop, and a call needs about ten turns. So
with many at work at a time each takes as long as all of them together, the one that is nearly done
and the one that has just come. What begins a request therefore lets go first what ends others: it
begins when a turn has passed in which next to nothing else was done, one piece of work per turn.
The requests that are there take less time then, and all of them together take no more.

Example: three uploads come while Picks are at work, whose turns take a millisecond each. After the
last of these the loop has a turn of 50 microseconds, and the first upload begins. Its own turns are
not quiet, so the second one begins after them. The third has waited for as long as anything may by
then, and begins beside it.
"""

import asyncio
from collections import deque
from typing import Final

from inferencecache.clock import NS_PER_US, Clock

_QUIET_NS: Final = 300 * NS_PER_US
"""A turn that took no longer had no more in it than the steps of one or two calls."""


class QuietTurns:
    """Gives out the quiet turns of one event loop, first come, first served.

    Args:
        clock: Measures turns.
        wait_max_ns: How long anything waits at most, in nanoseconds; 0 lets everything begin.
    """

    __slots__ = ("_clock", "_looked_ns", "_wait_max_ns", "_waiting")

    def __init__(self, clock: Clock, wait_max_ns: int) -> None:
        self._clock = clock
        self._wait_max_ns = wait_max_ns
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._looked_ns = 0

    async def take(self) -> None:
        """Wait for a quiet turn, or until the longest wait is over.

        Complexity: O(1) in each turn of the loop, however many wait.
        """
        if not self._wait_max_ns:
            return
        loop, now_ns = asyncio.get_running_loop(), self._clock.monotonic_ns()
        if not self._waiting:
            self._looked_ns = now_ns
            loop.call_soon(self._look, loop)
        turn = loop.create_future()
        self._waiting.append((turn, now_ns + self._wait_max_ns))
        await turn

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let begin who has waited long enough, and another one if the last turn was quiet."""
        now_ns = self._clock.monotonic_ns()
        is_quiet = now_ns - self._looked_ns <= _QUIET_NS
        while self._waiting and (is_quiet or self._waiting[0][1] <= now_ns):
            turn, _ = self._waiting.popleft()
            if not turn.done():  # who has gone away needs no turn
                turn.set_result(None)
                is_quiet = False
        self._looked_ns = now_ns
        if self._waiting:
            loop.call_soon(self._look, loop)
