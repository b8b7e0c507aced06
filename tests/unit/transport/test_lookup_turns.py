"""Whose turn it is among long lookups."""

import asyncio

import pytest

from inferencecache.clock import NS_PER_MS, ManualClock
from inferencecache.transport.lookup_turns import Entry, LookupTurn, LookupTurns


def new_turns(waiting_max: int = 8) -> LookupTurns:
    """Return turns by a clock that stands still at 0."""
    return LookupTurns(ManualClock(), waiting_max)


async def until_waiting(turns: LookupTurns, count: int) -> None:
    """Turn the loop until *count* lookups wait."""
    async with asyncio.timeout(30):
        while turns.waiting != count:
            await asyncio.sleep(0)


async def test_turns_are_taken_in_the_order_they_were_asked_for() -> None:
    """One at a time."""
    turns = new_turns()
    order: list[int] = []
    inside = most = 0

    async def work(number: int) -> None:
        nonlocal inside, most
        assert await turns.take(None) is Entry.TAKEN
        inside += 1
        most = max(most, inside)
        order.append(number)
        await asyncio.sleep(0)
        inside -= 1
        turns.give_back()

    await asyncio.gather(*(work(number) for number in range(6)))
    assert (order, most, turns.waiting) == ([0, 1, 2, 3, 4, 5], 1, 0)


async def test_one_more_than_may_wait_is_told_so_at_once() -> None:
    """Whoever works does not count as waiting, and a place that is left can be taken."""
    turns = new_turns(waiting_max=2)
    assert await turns.take(None) is Entry.TAKEN
    waiting = [asyncio.create_task(turns.take(None)) for _ in range(2)]
    await until_waiting(turns, 2)

    assert await turns.take(None) is Entry.FULL
    turns.give_back()
    assert await waiting[0] is Entry.TAKEN
    later = asyncio.create_task(turns.take(None))
    await until_waiting(turns, 2)
    for task in (waiting[1], later):
        turns.give_back()
        assert await task is Entry.TAKEN


@pytest.mark.parametrize("deadline_ns", [-1, 0, NS_PER_MS])
async def test_waiting_ends_with_the_time_there_is(deadline_ns: int) -> None:
    """It leaves its place to others."""
    turns = new_turns(waiting_max=1)
    assert await turns.take(None) is Entry.TAKEN
    assert await turns.take(deadline_ns) is Entry.LATE
    assert turns.waiting == 0


async def test_whoever_goes_away_does_not_keep_the_turn() -> None:
    """Neither while waiting nor when it was about to have it."""
    turns = new_turns()
    assert await turns.take(None) is Entry.TAKEN
    first, second = (asyncio.create_task(turns.take(None)) for _ in range(2))
    await until_waiting(turns, 2)
    turns.give_back()
    first.cancel()

    assert await second is Entry.TAKEN
    with pytest.raises(asyncio.CancelledError):
        await first
    assert turns.waiting == 0


async def test_a_turn_is_taken_once_and_given_back_once() -> None:
    """However often its lookup asks."""
    turns = new_turns()
    turn, other = LookupTurn(turns, None), LookupTurn(turns, None)
    assert [await turn.take(), await turn.take()] == [Entry.TAKEN, Entry.TAKEN]
    waiting = asyncio.create_task(other.take())
    await until_waiting(turns, 1)
    assert turn.is_wanted

    turn.give_back()
    turn.give_back()
    assert await waiting is Entry.TAKEN
    assert (turn.is_mine, other.is_mine, other.is_wanted) == (False, True, False)
