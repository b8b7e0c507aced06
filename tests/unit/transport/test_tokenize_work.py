"""Tokenizations under way: shared, bounded, waited for only so long."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event
from threading import enumerate as running_threads
from typing import Any

import pytest

from inferencecache.picker.prompt.blocks import NoBlocks
from inferencecache.transport.tokenize_work import (
    FAILED,
    TIMEOUT,
    Answer,
    Begin,
    TokenizeWork,
    in_task,
    in_thread,
)
from inferencecache.transport.work_threads import WorkThreads

DONE = NoBlocks(why="done")
FOREVER_S = 600.0
THREAD = "tokenize-work"


def settled(why: str) -> Answer:
    """Return the answer that a result leads to."""
    return NoBlocks(why=why)


@asynccontextmanager
async def threads(gate: Event) -> AsyncIterator[WorkThreads]:
    """Provide one thread, and let it end."""
    executor = WorkThreads(1, THREAD)
    try:
        yield executor
    finally:
        gate.set()
        executor.stop()
        for thread in running_threads():
            if thread.name.startswith(THREAD):
                thread.join()


def gated(executor: WorkThreads, gate: Event, why: str = "done") -> Begin:
    """Return work in a thread that ends when *gate* is open."""

    def compute() -> str:
        gate.wait()
        return why

    return in_thread(executor, compute, settled)


async def ready(work: TokenizeWork, waiting: int) -> None:
    """Let so many begin to wait for the only work there is."""
    async with asyncio.timeout(30):
        while sum(len(running.waiters) for running in work._running.values()) < waiting:
            await asyncio.sleep(0)


async def gone(work: TokenizeWork) -> None:
    """Wait until nothing is under way."""
    async with asyncio.timeout(30):
        while work:
            await asyncio.sleep(0)


async def test_all_who_ask_for_a_prompt_share_its_work() -> None:
    """It is begun once, and is nobody's afterwards."""
    work, gate = TokenizeWork(1, FOREVER_S), Event()
    async with threads(gate) as executor:
        asking = [
            asyncio.create_task(work.answer(b"a", gated(executor, gate, str(number))))
            for number in range(3)
        ]
        await ready(work, 3)
        gate.set()

        assert await asyncio.gather(*asking) == [NoBlocks(why="0")] * 3
        assert not work
        assert await work.answer(b"a", gated(executor, gate)) == DONE


async def test_more_work_than_there_may_be_is_not_begun() -> None:
    """It is as if it took too long; what is under way already is still shared."""
    work, gate = TokenizeWork(1, FOREVER_S), Event()
    async with threads(gate) as executor:
        first = asyncio.create_task(work.answer(b"a", gated(executor, gate)))
        await ready(work, 1)
        assert await work.answer(b"b", gated(executor, gate)) is TIMEOUT
        second = asyncio.create_task(work.answer(b"a", gated(executor, gate)))
        await ready(work, 2)
        gate.set()

        assert await asyncio.gather(first, second) == [DONE, DONE]


async def test_work_that_takes_too_long_goes_on() -> None:
    """Who waited goes without; it ends for who asks later."""
    work, gate = TokenizeWork(1, 0.01), Event()
    async with threads(gate) as executor:
        assert await work.answer(b"a", gated(executor, gate)) is TIMEOUT
        assert len(work) == 1
        gate.set()
        await gone(work)


async def test_each_gives_up_when_its_own_time_is_over() -> None:
    """Also who begins to wait while others do, of whom one has gone and one has its answer."""
    timeout_s = 0.05
    work, quick = TokenizeWork(3, timeout_s), TokenizeWork(1, timeout_s / 2)
    gate, open_gate = Event(), Event()
    loop, waited_s = asyncio.get_running_loop(), list[float]()
    open_gate.set()

    async def wait(name: bytes) -> None:
        started_s = loop.time()
        assert await work.answer(name, gated(executor, gate)) is TIMEOUT
        waited_s.append(loop.time() - started_s)

    async with threads(gate) as executor:
        assert await work.answer(b"a", gated(executor, open_gate)) == DONE
        gone = asyncio.create_task(work.answer(b"b", gated(executor, gate)))
        await ready(work, 1)
        gone.cancel()
        first = asyncio.create_task(wait(b"b"))
        assert await quick.answer(b"later", gated(executor, gate)) is TIMEOUT
        await asyncio.gather(first, wait(b"b"), wait(b"c"))

    assert len(waited_s) == 3
    assert min(waited_s) >= timeout_s


async def test_who_gives_up_takes_nothing_from_others() -> None:
    """A caller that is cancelled leaves the work to the rest."""
    work, gate = TokenizeWork(1, FOREVER_S), Event()
    async with threads(gate) as executor:
        first = asyncio.create_task(work.answer(b"a", gated(executor, gate)))
        second = asyncio.create_task(work.answer(b"a", gated(executor, gate)))
        await ready(work, 2)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        gate.set()

        assert await second == DONE


async def test_what_is_raised_ends_in_an_answer() -> None:
    """In a thread, in a task, while the answer is made, and when nobody waits for it any more.

    The event loop tells of it, and the name is free again.
    """
    work, quick, gate = TokenizeWork(1, FOREVER_S), TokenizeWork(1, 0.01), Event()
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    def fail() -> str:
        raise ArithmeticError

    def fail_at_the_gate() -> str:
        gate.wait()
        raise ArithmeticError

    async def fail_in_a_task() -> str:
        raise ArithmeticError

    def fail_to_settle(_: str) -> Answer:
        raise ArithmeticError

    async with threads(gate) as executor:
        for begin in (
            in_thread(executor, fail, settled),
            in_thread(executor, str, fail_to_settle),
            in_task(fail_in_a_task, settled),
        ):
            assert await work.answer(b"a", begin) is FAILED
            assert not work
        at_the_gate = in_thread(executor, fail_at_the_gate, settled)
        assert await quick.answer(b"a", at_the_gate) is TIMEOUT
        gate.set()
        await gone(quick)

    assert [type(context["exception"]) for context in told] == [ArithmeticError] * 4


async def test_stopping_ends_work_and_waiting() -> None:
    """Tasks end, threads that have not begun do not begin, and what ends later is nobody's."""
    work, gate = TokenizeWork(3, FOREVER_S), Event()
    begun, ended = asyncio.Event(), asyncio.Event()

    async def fetch() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async with threads(gate) as executor:
        asking = [
            asyncio.create_task(work.answer(b"a", gated(executor, gate))),
            asyncio.create_task(work.answer(b"b", gated(executor, gate))),
            asyncio.create_task(work.answer(b"c", in_task(fetch, settled))),
        ]
        await ready(work, 3)
        await begun.wait()
        await work.stop()
        assert ended.is_set()
        assert not work
        answers = await asyncio.gather(*asking, return_exceptions=True)
        gate.set()

    assert [type(answer) for answer in answers] == [asyncio.CancelledError] * 3
    await asyncio.sleep(0)  # what the thread had to tell has been heard


async def test_work_that_was_called_off_says_nothing_of_the_same_prompt_begun_anew() -> None:
    """What is asked for while everything ends is answered by its own work."""
    work, ended = TokenizeWork(3, FOREVER_S), asyncio.Event()

    async def fetch() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async def fetch_anew() -> str:
        return "done"

    called_off = asyncio.create_task(work.answer(b"a", in_task(fetch, settled)))
    await ready(work, 1)
    await asyncio.sleep(0)  # the work has begun
    stopping = asyncio.create_task(work.stop())
    await ended.wait()

    assert await work.answer(b"a", in_task(fetch_anew, settled)) == DONE
    await stopping
    with pytest.raises(asyncio.CancelledError):
        await called_off
    assert not work
