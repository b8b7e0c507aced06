"""Tokenizations under way: each prompt once, never too many, none waited for too long.

Rules of this file: from the end of work in a thread to whoever waits for it, the event loop turns
twice and no task is made. A turn and a task cost more than what is new of many a conversation.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from inferencecache.picker.prompt.blocks import NoBlocks, PromptBlocks
from inferencecache.transport.giving_way import giving_way

ResultT = TypeVar("ResultT")
Answer = PromptBlocks | NoBlocks

TIMEOUT: Final = NoBlocks(why="tokenizer_timeout")
FAILED: Final = NoBlocks(why="tokenizer_failed")


class Begun(Protocol):
    """Work that can be called off."""

    def cancel(self) -> bool:
        """Do it no more, if that is still possible."""
        ...


Finish = Callable[[Callable[[], Answer]], None]
"""Takes what gives the answer; called on the event loop, once."""

Begin = Callable[[Finish], Begun]
"""Begins work that will call what it is given."""

_Waiters = dict[asyncio.Future[Answer], None]


@dataclass(frozen=True, slots=True)
class _Running:
    """One tokenization.

    Attributes:
        begun: The work.
        waiters: Who waits for it, in order.
    """

    begun: Begun
    waiters: _Waiters


class TokenizeWork:
    """Runs tokenizations beside whoever waits for them.

    One that takes too long is not stopped: its blocks are there for who asks next.

    Args:
        waiting_max: Most at a time.
        timeout_s: Longest wait for one, in seconds.
    """

    def __init__(self, waiting_max: int, timeout_s: float) -> None:
        self._waiting_max = waiting_max
        self._timeout_s = timeout_s
        self._running: dict[bytes, _Running] = {}

    def __len__(self) -> int:
        return len(self._running)

    async def answer(self, name: bytes, begin: Begin) -> Answer:
        """Return the blocks of the prompt called *name*.

        Args:
            name: Of the prompt; where it is under way already, that is waited for.
            begin: Begins it.
        """
        running = self._running.get(name)
        if running is None:
            if len(self._running) >= self._waiting_max:
                return TIMEOUT
            waiters: _Waiters = {}
            running = _Running(begin(lambda make: self._finish(name, waiters, make)), waiters)
            self._running[name] = running
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Answer] = loop.create_future()
        running.waiters[waiter] = None
        timer = loop.call_later(self._timeout_s, _give_up, waiter)
        try:
            return await waiter
        finally:
            timer.cancel()
            del running.waiters[waiter]

    async def stop(self) -> None:
        """End all of it."""
        running, self._running = self._running, {}
        for work in running.values():
            work.begun.cancel()
            for waiter in work.waiters:
                waiter.cancel()
        tasks = [work.begun for work in running.values() if isinstance(work.begun, asyncio.Task)]
        await asyncio.gather(*tasks, return_exceptions=True)

    def _finish(self, name: bytes, waiters: _Waiters, make: Callable[[], Answer]) -> None:
        running = self._running.get(name)
        if running is None or running.waiters is not waiters:  # called off
            return
        del self._running[name]
        answer: Answer = FAILED  # of what is raised the event loop tells
        try:
            answer = make()
        finally:
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(answer)


def _give_up(waiter: asyncio.Future[Answer]) -> None:
    if not waiter.done():
        waiter.set_result(TIMEOUT)


def in_thread(
    threads: Executor, compute: Callable[[], ResultT], settle: Callable[[ResultT], Answer]
) -> Begin:
    """Return what begins work in a thread.

    Args:
        threads: Where.
        compute: Does it.
        settle: Makes an answer of what it came to, on the event loop.
    """

    def begin(finish: Finish) -> Begun:
        loop = asyncio.get_running_loop()

        def tell(work: Future[ResultT]) -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(finish, lambda: settle(work.result()))

        work = threads.submit(giving_way, compute)
        work.add_done_callback(tell)  # which the work keeps, so it must not keep the work
        return work

    return begin


def in_task(
    fetch: Callable[[], Coroutine[Any, Any, ResultT]], settle: Callable[[ResultT], Answer]
) -> Begin:
    """Return what begins work that waits for others.

    Args:
        fetch: Does it.
        settle: Makes an answer of what it came to.
    """

    def begin(finish: Finish) -> Begun:
        task = asyncio.get_running_loop().create_task(fetch())
        task.add_done_callback(lambda task: finish(lambda: settle(task.result())))
        return task

    return begin
