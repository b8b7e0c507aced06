"""The index in this process, asked by Picks: short prompts at once, long ones slice by slice."""

import asyncio
from typing import Final

from inferencecache.clock import Clock
from inferencecache.picker.prefix.index_source import IndexFlaw, IndexFound, IndexQuestion
from inferencecache.service.index_matches import IndexMatches
from inferencecache.transport.lookup_turns import Entry, LookupTurn, LookupTurns

_TIMEOUT: Final = IndexFound(flaw=IndexFlaw.TIMEOUT)


class IndexHere:
    """An :class:`IndexSource` at hand.

    Long prompts take turns, as long lookups do: one is matched at a time, with a turn of the loop
    between two slices.

    Args:
        matches: Asks the index.
        clock: Monotonic time.
        waiting_max: Most long prompts that wait at one time; more are not matched.

    Attributes:
        hears_replicas: Every report comes by here.
    """

    hears_replicas: Final = True

    def __init__(self, matches: IndexMatches, clock: Clock, waiting_max: int) -> None:
        self._matches = matches
        self._clock = clock
        self._turns = LookupTurns(clock, waiting_max)

    async def match(self, question: IndexQuestion) -> IndexFound:
        """Return who holds how much of a prompt."""
        found = self._matches.at_once(question)
        return await self._in_turn(question) if found is None else found

    async def _in_turn(self, question: IndexQuestion) -> IndexFound:
        turn = LookupTurn(self._turns, question.deadline_ns)
        steps = self._matches.steps(question)
        try:
            while True:
                if await turn.take() is not Entry.TAKEN:
                    return _TIMEOUT
                await asyncio.sleep(0)
                if self._clock.monotonic_ns() >= question.deadline_ns:
                    return _TIMEOUT
                next(steps)
        except StopIteration as finished:
            found: IndexFound = finished.value
            return found
        finally:
            turn.give_back()
