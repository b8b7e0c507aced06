"""Requests that can wait, while workers are busy: who is let in next.

Rules of this file: tenants take turns, and within a tenant whoever came first goes first; one whose
workers are still busy does not hold up others whose are not. There is room for so many, and for
each only so much time. How to wait is somebody else's business: nothing here does.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deferred:
    """A request that waits.

    Attributes:
        tenant: Whose it is.
        place: What it is to be picked from; busy for one is busy for all that name it.
        is_calm: Returns whether the workers there have room for it by now, behind so many requests
            that were let in and are not placed yet.
        until_ns: Monotonic time at which it waits no longer.
    """

    tenant: str
    place: Hashable
    is_calm: Callable[[int], bool]
    until_ns: int


class WaitingRoom(Protocol):
    """Lets requests wait."""

    def entered(self, deferred: Deferred) -> AbstractAsyncContextManager[bool]:
        """Wait, and then count as one that is not placed yet while the block runs.

        Returns:
            Whether the request may go on: False where there is no room, or its time is over.
        """
        ...


class NoWaitingRoom:
    """Nobody waits: whoever does not find room at once is turned away."""

    @asynccontextmanager
    async def entered(self, deferred: Deferred) -> AsyncIterator[bool]:
        """Return whether there is room."""
        yield deferred.is_calm(0)


class FairQueue:
    """Those that wait, in the order in which they are to be let in.

    Args:
        waiting_max: Most that wait.
    """

    def __init__(self, waiting_max: int) -> None:
        self._waiting_max = waiting_max
        self._by_tenant: OrderedDict[str, OrderedDict[Deferred, None]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, deferred: Deferred) -> bool:
        """Let a request wait; return whether there was room."""
        if self._count >= self._waiting_max:
            return False
        self._by_tenant.setdefault(deferred.tenant, OrderedDict())[deferred] = None
        self._count += 1
        return True

    def remove(self, deferred: Deferred) -> None:
        """Let a request go that waits no longer, for whatever reason; one that is gone stays so."""
        waiting = self._by_tenant.get(deferred.tenant)
        if waiting is None or deferred not in waiting:
            return
        del waiting[deferred]
        self._count -= 1
        if not waiting:
            del self._by_tenant[deferred.tenant]

    def take(self, ahead: int) -> Deferred | None:
        """Return whoever is to be let in now, and take it out; its tenant's next turn comes last.

        Args:
            ahead: Requests that were let in and are not placed yet.

        Complexity: O(waiting), and one look per place.
        """
        calm: dict[Hashable, bool] = {}
        for tenant, waiting in self._by_tenant.items():
            for deferred in waiting:
                if deferred.place not in calm:
                    calm[deferred.place] = deferred.is_calm(ahead)
                if calm[deferred.place]:
                    self._by_tenant.move_to_end(tenant)
                    self.remove(deferred)
                    return deferred
        return None
