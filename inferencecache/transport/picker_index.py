"""The index in this process, asked by Picks: short prompts at once, long ones slice by slice."""

import asyncio
from collections.abc import Generator
from typing import Final

from inferencecache.clock import Clock
from inferencecache.picker.prefix.index_source import IndexFlaw, IndexFound, IndexQuestion
from inferencecache.service.index_matches import IndexMatches
from inferencecache.transport.lookup_turns import Entry, LookupTurn, LookupTurns

_Steps = Generator[None, None, IndexFound]

_TIMEOUT: Final = IndexFound(flaw=IndexFlaw.TIMEOUT)

_SOON_NS: Final = 300_000
"""For so long the slices of a long prompt follow one another at once: half of what reading its body
takes. Nearly all are matched by then; a slice of blocks that lie scattered takes longer, and the
next one waits."""


class IndexHere:
    """An :class:`IndexSource` at hand.

    Long prompts that are not matched soon take turns, as long lookups do: one is matched at a time,
    with a turn of the loop between two slices.

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
        if found is not None:
            return found
        steps = self._matches.steps(question)
        found = self._soon(question, steps)
        return await self._in_turn(question, steps) if found is None else found

    def _soon(self, question: IndexQuestion, steps: _Steps) -> IndexFound | None:
        """Return what *steps* come to, None if they take longer; then at least one is done."""
        until_ns = min(self._clock.monotonic_ns() + _SOON_NS, question.deadline_ns)
        try:
            next(steps)
            while self._clock.monotonic_ns() < until_ns:
                next(steps)
        except StopIteration as finished:
            found: IndexFound = finished.value
            return found
        return None

    async def _in_turn(self, question: IndexQuestion, steps: _Steps) -> IndexFound:
        turn = LookupTurn(self._turns, question.deadline_ns)
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
