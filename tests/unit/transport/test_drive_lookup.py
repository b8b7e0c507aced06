"""Lookups of many slices on the event loop."""

import asyncio
from itertools import groupby

import pytest
from scripted_tokenizer import ScriptedWork

from inferencecache.clock import NS_PER_MS, NS_PER_S, ManualClock
from inferencecache.service import RouteAnswer, RouteSteps
from inferencecache.service.tokenizer import Wait
from inferencecache.transport.drive import drive_lookup
from inferencecache.transport.lookup_turns import LookupTurn, LookupTurns
from inferencecache.types import ReasonCode

SLICES = 4
NO_HINT = RouteAnswer(ReasonCode.NO_HINT)
LATE = RouteAnswer(ReasonCode.TIMEOUT)


class Lookups:
    """Lookups that note who works when.

    Args:
        slice_ns: How long a slice takes, by the clock.
        waiting_max: Lookups that may wait.
    """

    def __init__(self, slice_ns: int = 0, waiting_max: int = 8) -> None:
        self.clock = ManualClock()
        self.turns = LookupTurns(self.clock, waiting_max)
        self.worked: list[str] = []
        self.slice_ns = slice_ns

    def steps(self, name: str, slices: int = SLICES) -> RouteSteps:
        """Work in *slices*."""
        for number in range(slices):
            if number and (yield None):
                return LATE
            self.worked.append(name)
            self.clock.advance_ns(self.slice_ns)
        return NO_HINT

    def start(
        self, steps: RouteSteps, deadline_ns: int | None = None
    ) -> asyncio.Task[RouteAnswer | None]:
        """Begin a lookup."""
        turn = LookupTurn(self.turns, deadline_ns)
        return asyncio.create_task(drive_lookup(steps, turn, self.clock))

    async def until_waiting(self, count: int) -> None:
        """Turn the loop until *count* lookups wait."""
        async with asyncio.timeout(30):
            while self.turns.waiting != count:
                await asyncio.sleep(0)


async def test_one_works_at_a_time_in_the_order_they_came() -> None:
    """But for the first slice of each, which most lookups consist of."""
    lookups = Lookups()
    answers = await asyncio.gather(*(lookups.start(lookups.steps(name)) for name in "abc"))

    assert answers == [NO_HINT] * 3
    rest = list(lookups.worked)
    for name in "abc":
        rest.remove(name)
    assert [(name, len(list(alike))) for name, alike in groupby(rest)] == [
        ("a", 3),
        ("b", 3),
        ("c", 3),
    ]


async def test_a_lookup_of_one_slice_does_not_wait() -> None:
    """Whoever has the turn."""
    lookups = Lookups(waiting_max=1)
    assert await lookups.turns.take(None)
    waiting = lookups.start(lookups.steps("long"))
    await lookups.until_waiting(1)

    assert await lookups.start(lookups.steps("short", slices=1)) == NO_HINT
    lookups.turns.give_back()
    assert await waiting == NO_HINT


async def test_one_more_than_may_wait_is_not_answered() -> None:
    """It gives up after its first slice, and those before it have their turn."""
    lookups = Lookups(waiting_max=2)
    driven = [lookups.start(lookups.steps(name)) for name in "abcd"]

    assert [await one for one in driven] == [NO_HINT, NO_HINT, NO_HINT, None]
    assert lookups.worked.count("d") == 1


async def test_one_whose_time_ends_while_it_waits_is_late() -> None:
    """Although nobody has given the turn back."""
    lookups = Lookups()
    await lookups.turns.take(None)

    assert await lookups.start(lookups.steps("a"), deadline_ns=NS_PER_MS) == LATE
    assert lookups.worked == ["a"]


async def test_one_whose_caller_goes_away_while_it_waits_is_late() -> None:
    """It is told, counts itself, and leaves its place."""
    lookups = Lookups()
    told: list[bool | None] = []

    def steps() -> RouteSteps:
        told.append((yield None))
        return LATE

    await lookups.turns.take(None)
    driven = lookups.start(steps())
    await lookups.until_waiting(1)
    driven.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driven
    assert told == [True]
    assert lookups.turns.waiting == 0


async def test_the_turn_is_free_while_a_prompt_is_tokenized() -> None:
    """And after a lookup that failed."""
    lookups = Lookups()
    waiting = asyncio.Event()

    def tokenizing() -> RouteSteps:
        yield None
        yield Wait(ScriptedWork(None, waiting), 60 * NS_PER_S)
        return NO_HINT

    def failing() -> RouteSteps:
        yield None
        raise ZeroDivisionError

    driven = lookups.start(tokenizing())
    await waiting.wait()
    with pytest.raises(ZeroDivisionError):
        await lookups.start(failing())
    assert await lookups.start(lookups.steps("a")) == NO_HINT
    assert not driven.done()
    driven.cancel()


@pytest.mark.parametrize(
    ("slice_ms", "others", "rest_ms"),
    [(1, 0, 0), (1, 1, 1), (30, 0, 30)],
    ids=["short", "short but others wait", "long"],
)
async def test_a_lookup_rests_for_others(
    monkeypatch: pytest.MonkeyPatch, slice_ms: int, others: int, rest_ms: int
) -> None:
    """For as long as its slice took, unless it is short and alone."""
    lookups = Lookups(slice_ns=slice_ms * NS_PER_MS)
    slept: list[float] = []
    turn_loop = asyncio.sleep

    async def sleep(delay_s: float) -> None:
        slept.append(delay_s)
        await turn_loop(0)

    first = lookups.start(lookups.steps("a"))
    waiting = [lookups.start(lookups.steps("b")) for _ in range(others)]
    monkeypatch.setattr(asyncio, "sleep", sleep)
    await first
    assert slept[1 : SLICES - 1] == [rest_ms / 1_000] * (SLICES - 2)
    await asyncio.gather(*waiting)
