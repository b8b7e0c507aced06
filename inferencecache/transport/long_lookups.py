"""Lookups of more than one step: those to read or to derive take long, and take turns."""

from collections.abc import Callable, Generator

from inferencecache.service import CachePlane, RouteAnswer, RouteRequest, RouteSteps
from inferencecache.transport.drive import drive_lookup
from inferencecache.transport.lookup_turns import LookupTurn, LookupTurns
from inferencecache.transport.read_lookup import read_names

ReadAllowed = Callable[[bytes], Generator[None, None, RouteRequest | RouteAnswer]]
"""Makes a request of a message in slices, or the answer to it where its caller may not ask."""


class LongLookups:
    """Answers lookups that would hold up others.

    Args:
        plane: The cache plane.

    Attributes:
        read_at_once_bytes: Longest message that is read without a turn.
    """

    __slots__ = ("_plane", "_turns", "read_at_once_bytes")

    def __init__(self, plane: CachePlane) -> None:
        settings = plane.lookup_settings
        self._plane = plane
        self._turns = LookupTurns(plane.clock, settings.waiting_max)
        self.read_at_once_bytes = settings.long_message_bytes

    @property
    def waiting(self) -> int:
        """Lookups that wait for their turn."""
        return self._turns.waiting

    async def derive(self, request: RouteRequest, deadline_ns: int | None) -> RouteAnswer:
        """Answer a lookup that has been read.

        Args:
            request: The question.
            deadline_ns: Monotonic time by which the caller wants the answer, or None.
        """
        started_ns = self._plane.clock.monotonic_ns()
        steps = self._plane.lookup_route_steps(request, deadline_ns)
        return await self._in_turn(steps, request, deadline_ns, started_ns)

    async def answer(self, data: bytes, deadline_ns: int | None, read: ReadAllowed) -> RouteAnswer:
        """Answer a lookup that already takes long to read: it is read in its turn.

        Args:
            data: The message.
            deadline_ns: Monotonic time by which the caller wants the answer, or None.
            read: Reads it.
        """
        started_ns = self._plane.clock.monotonic_ns()
        names = read_names(data) or RouteRequest()

        def steps() -> RouteSteps:
            if (yield None):
                return self._plane.turn_away(names, started_ns, is_late=True)
            request = yield from _unless_late(read(data))
            if request is None:
                return self._plane.turn_away(names, started_ns, is_late=True)
            if isinstance(request, RouteAnswer):
                return request
            if (yield None):
                return self._plane.turn_away(request, started_ns, is_late=True)
            return (
                yield from self._plane.lookup_route_steps(
                    request, deadline_ns, started_ns=started_ns
                )
            )

        return await self._in_turn(steps(), names, deadline_ns, started_ns)

    async def _in_turn(
        self, steps: RouteSteps, names: RouteRequest, deadline_ns: int | None, started_ns: int
    ) -> RouteAnswer:
        """Return the answer of *steps*, or one that says nothing where too many wait already."""
        ends_ns = self._plane.lookup_deadline_ns(names, deadline_ns, started_ns)
        answer = await drive_lookup(steps, LookupTurn(self._turns, ends_ns))
        if answer is None:
            answer = self._plane.turn_away(names, started_ns, is_late=False)
        return answer


def _unless_late(
    reading: Generator[None, None, RouteRequest | RouteAnswer],
) -> Generator[None, bool | None, RouteRequest | RouteAnswer | None]:
    """Return what *reading* does, None once there is no time left for it."""
    while True:
        try:
            next(reading)
        except StopIteration as finished:
            request: RouteRequest | RouteAnswer = finished.value
            return request
        if (yield None):
            return None
