"""Turns of long lookups: one works, the others wait in the order they came.

A lookup of a million tokens takes tens of slices. Did several of them work at once, each turn of
the event loop would have a slice of every one, and a short lookup, which needs several turns, would
wait for all of those each time. So one works at a time; the others wait without any work on the
loop, no longer than their time allows, and only so many of them.
"""

import asyncio
from enum import Enum, auto

from inferencecache.clock import NS_PER_S, Clock


class Entry(Enum):
    """What became of a lookup that asked for its turn."""

    TAKEN = auto()
    """It may work."""
    LATE = auto()
    """Its time ran out first."""
    FULL = auto()
    """Too many wait already."""


class LookupTurns:
    """Gives out the turns of one server.

    Args:
        clock: Measures how long a lookup may still wait.
        waiting_max: Most lookups that wait at one time, >= 1.
    """

    __slots__ = ("_clock", "_lock", "_waiting", "_waiting_max")

    def __init__(self, clock: Clock, waiting_max: int) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._waiting_max = waiting_max

    @property
    def waiting(self) -> int:
        """Lookups that wait now."""
        return self._waiting

    async def take(self, deadline_ns: int | None) -> Entry:
        """Wait for a turn; one that is taken has to be given back.

        Args:
            deadline_ns: Monotonic time at which to give up, or None.
        """
        if self._waiting >= self._waiting_max:
            return Entry.FULL
        limit_s = None
        if deadline_ns is not None:
            limit_s = (deadline_ns - self._clock.monotonic_ns()) / NS_PER_S
        self._waiting += 1
        try:
            async with asyncio.timeout(limit_s):
                await self._lock.acquire()
        except TimeoutError:
            return Entry.LATE
        finally:
            self._waiting -= 1
        return Entry.TAKEN

    def give_back(self) -> None:
        """Let the next lookup have its turn."""
        self._lock.release()


class LookupTurn:
    """One lookup's turn, before, during and after it.

    Args:
        turns: Where to ask for it.
        deadline_ns: Monotonic time at which the lookup gives up, or None.

    Attributes:
        is_mine: Whether the lookup may work now.
    """

    __slots__ = ("_deadline_ns", "_turns", "is_mine")

    def __init__(self, turns: LookupTurns, deadline_ns: int | None) -> None:
        self._turns = turns
        self._deadline_ns = deadline_ns
        self.is_mine = False

    @property
    def is_wanted(self) -> bool:
        """Whether another lookup waits for its turn."""
        return self._turns.waiting > 0

    async def take(self) -> Entry:
        """Wait for the turn, unless it is this lookup's already."""
        if self.is_mine:
            return Entry.TAKEN
        entry = await self._turns.take(self._deadline_ns)
        self.is_mine = entry is Entry.TAKEN
        return entry

    def give_back(self) -> None:
        """Let others work; does nothing where the turn is not this lookup's."""
        if self.is_mine:
            self.is_mine = False
            self._turns.give_back()
