"""Run the core's sliced work on the event loop, giving it back between slices.

A call needs several turns of the loop: some to be accepted, where the library takes one call of a
method at a time, then others until it is answered. Were each turn to wait for a slice, lookups
would queue up for as long as a big report takes. So long work rests after each slice for as long as
the slice took, and meanwhile the loop is free for whatever comes. Rare work, like loading files,
need not rest.
"""

import asyncio
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Final, TypeVar

from inferencecache.clock import NS_PER_MS, NS_PER_S, Clock
from inferencecache.service import RouteAnswer, RouteSteps
from inferencecache.transport.lookup_turns import Entry, LookupTurn
from inferencecache.transport.system_clock import SystemClock

ResultT = TypeVar("ResultT")

_REST_NS_MIN: Final = NS_PER_MS
"""Shortest rest: the loop's timers count milliseconds. Shorter ones are added up."""

_UNRESTED_NS: Final = 20 * NS_PER_MS
"""Work of a lookup after which it rests even if no other waits for its turn."""


async def drive_lookup(
    steps: RouteSteps, turn: LookupTurn, clock: Clock | None = None
) -> RouteAnswer | None:
    """Return the answer of a lookup, None where too many wait for their turn.

    The first slice is done at once: most lookups have no other. For what comes after, a lookup
    waits for its turn; while its prompt is tokenized elsewhere, others have it. It rests like other
    long work, but for a short one that nobody waits for: that answers sooner, and the loop turns
    after each slice all the same. A caller that goes away in between counts as a timeout.

    Args:
        steps: The lookup.
        turn: Its turn, which has ended when this returns.
        clock: Measures the slices; the machine's by default.
    """
    clock = clock or SystemClock()
    gone, worked_ns = None, 0
    try:
        while True:
            started_ns = clock.monotonic_ns()
            pause = steps.send(gone)
            spent_ns = clock.monotonic_ns() - started_ns
            worked_ns += spent_ns
            if pause is not None:
                turn.give_back()
                await pause.work.wait(pause.timeout_ns)
                continue
            entry = await _rest_in_turn(turn, spent_ns, worked_ns)
            if entry is Entry.FULL:
                steps.close()
                return None
            gone = entry is Entry.LATE or None
    except StopIteration as finished:
        answer: RouteAnswer = finished.value
        return answer
    except asyncio.CancelledError:
        with suppress(StopIteration):
            steps.send(True)  # noqa: FBT003 - the generator's protocol
        raise
    finally:
        turn.give_back()


async def _rest_in_turn(turn: LookupTurn, spent_ns: int, worked_ns: int) -> Entry:
    """Take *turn*, then let others work.

    Args:
        turn: The turn of a lookup.
        spent_ns: How long its last slice took.
        worked_ns: How long all its slices took.
    """
    entry = await turn.take()
    if entry is Entry.TAKEN:
        is_short = worked_ns < _UNRESTED_NS and not turn.is_wanted
        await asyncio.sleep(0 if is_short else spent_ns / NS_PER_S)
    return entry


async def drive(
    steps: Generator[None, None, ResultT], clock: Clock | None = None, *, rests: bool = True
) -> ResultT:
    """Return the result of *steps*; may be abandoned between two of them.

    Args:
        steps: The work.
        clock: Measures the steps; the machine's by default.
        rests: Whether half of the time until its end is left to others; else they get a turn after
            each step, which is enough for work that is rare.
    """
    clock = clock or SystemClock()
    owed_ns = 0
    while True:
        started_ns = clock.monotonic_ns()
        try:
            next(steps)
        except StopIteration as finished:
            result: ResultT = finished.value
            return result
        owed_ns += clock.monotonic_ns() - started_ns
        if not rests or owed_ns < _REST_NS_MIN:
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(owed_ns / NS_PER_S)
            owed_ns = 0


async def drive_slices(slices: Iterator[None], clock: Clock | None = None) -> None:
    """Do sliced work to its end like :func:`drive`."""
    await drive(_steps(slices), clock)


def _steps(slices: Iterator[None]) -> Generator[None, None, None]:
    yield from slices


class Completer:
    """Runs sliced changes to their end, even if whoever asked for them goes away."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, slices: Iterator[None]) -> None:
        """Run *slices*; what needs only one runs at once."""
        for _ in slices:
            await asyncio.shield(self._start(slices))

    async def finish(self) -> None:
        """Wait for everything still running."""
        while self._running:
            await asyncio.wait(set(self._running))

    def _start(self, slices: Iterator[None]) -> asyncio.Task[None]:
        task = asyncio.create_task(_exhaust(slices))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task


async def _exhaust(slices: Iterator[None]) -> None:
    await asyncio.sleep(0)
    await drive_slices(slices)
