"""Sliced work on the event loop."""

import asyncio
from collections.abc import Generator, Iterator

import pytest

from inferencecache.transport.drive import Completer, drive


async def test_the_loop_turns_between_slices() -> None:
    """Somebody else gets to run at each pause."""
    turns: list[str] = []

    def work() -> Generator[None, None, str]:
        for _ in range(3):
            turns.append("work")
            yield
        return "result"

    async def other() -> None:
        for _ in range(3):
            turns.append("other")
            await asyncio.sleep(0)

    result, _ = await asyncio.gather(drive(work()), other())

    assert result == "result"
    assert turns == ["work", "other"] * 3


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
