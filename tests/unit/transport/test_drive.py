"""Sliced work on the event loop."""

import asyncio
from collections.abc import Generator, Iterator

import pytest

from inferencecache.clock import NS_PER_MS, ManualClock
from inferencecache.transport.drive import Completer, drive, drive_slices


class Turns:
    """Work in three slices that take no time, beside somebody else who wants to run, too."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def work(self) -> Generator[None, None, str]:
        """Take three turns."""
        for _ in range(3):
            self.taken.append("work")
            yield
        return "result"

    async def other(self, driven: asyncio.Task[str]) -> None:
        """Take turns until the work is done."""
        while not driven.done():
            self.taken.append("other")
            await asyncio.sleep(0)

    async def run(self) -> str:
        """Let both run; return what the work returned."""
        driven = asyncio.create_task(drive(self.work(), ManualClock()))
        await self.other(driven)
        return driven.result()


async def test_the_loop_turns_between_slices() -> None:
    """Somebody else gets to run at each pause."""
    turns = Turns()

    assert await turns.run() == "result"
    assert turns.taken[:6] == ["other", "work"] * 3


def slices_of(clock: ManualClock, slice_ns: int, count: int = 3) -> Generator[None, None, str]:
    """Take *count* turns of the same length."""
    for _ in range(count):
        clock.advance_ns(slice_ns)
        yield
    return "done"


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how long work rests, in seconds; nobody waits for it."""
    delays: list[float] = []
    turn_loop = asyncio.sleep

    async def sleep(delay_s: float) -> None:
        delays.append(delay_s)
        await turn_loop(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return delays


async def test_work_rests_for_as_long_as_its_slice_took(slept: list[float]) -> None:
    """A call that needs several turns gets them before the next slice."""
    clock = ManualClock()

    assert await drive(slices_of(clock, 20 * NS_PER_MS), clock) == "done"
    assert slept == [0.02, 0.02, 0.02]


async def test_rare_work_gives_way_without_rests(slept: list[float]) -> None:
    """However long its steps are, others get one turn after each, and it is done sooner."""
    clock = ManualClock()

    assert await drive(slices_of(clock, 20 * NS_PER_MS), clock, rests=False) == "done"
    assert slept == [0, 0, 0]


async def test_rests_that_timers_would_stretch_are_added_up(slept: list[float]) -> None:
    """Work in thousands of tiny slices rests for as long as it works, and no longer."""
    clock = ManualClock()
    await drive_slices(slices_of(clock, NS_PER_MS // 4, 10), clock)

    assert slept == [0, 0, 0, 0.001] * 2 + [0, 0]


async def test_slices_are_done_to_their_end() -> None:
    """Work that returns nothing is driven alike."""
    done: list[int] = []

    def slices() -> Iterator[None]:
        for number in range(3):
            done.append(number)
            yield

    await drive_slices(slices(), ManualClock())

    assert done == [0, 1, 2]


async def test_changes_are_completed_without_whoever_asked() -> None:
    """A change that has begun ends, although its caller was cancelled."""
    done: list[int] = []
    begun = asyncio.Event()

    def change() -> Iterator[None]:
        for number in range(5):
            begun.set()
            done.append(number)
            yield

    completer = Completer()
    asking = asyncio.create_task(completer.run(change()))
    await begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await completer.finish()

    assert done == [0, 1, 2, 3, 4]


async def test_small_changes_are_done_at_once() -> None:
    """Without a pause there is no task."""
    done: list[int] = []

    def change() -> Iterator[None]:
        done.append(1)
        return iter(())

    await Completer().run(change())

    assert done == [1]


async def test_failure_of_a_change_reaches_whoever_asked() -> None:
    """A bug in a later slice is not lost in the background."""

    def change() -> Iterator[None]:
        yield
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await Completer().run(change())
