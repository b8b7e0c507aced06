"""Tokenizations under way: each prompt once, never too many, none waited for too long.

Rules of this file: from the end of work in a thread to whoever waits for it, the event loop turns
twice and no task is made; and one timer is set for all who wait, that of the first of them to give
up. A turn, a task and a timer each cost more than what is new of many a conversation.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from inferencecache.picker.prompt.blocks import NoBlocks, PromptBlocks
from inferencecache.transport.giving_way import giving_way
from inferencecache.transport.work_threads import WorkThreads

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
        self._patience_s: dict[asyncio.Future[Answer], float] = {}
        self._timer: asyncio.TimerHandle | None = None

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
        self._patience_s[waiter] = give_up_s = loop.time() + self._timeout_s
        if self._timer is None:
            self._timer = loop.call_at(give_up_s, self._give_up)
        try:
            return await waiter
        finally:
            del self._patience_s[waiter]
            del running.waiters[waiter]

    async def stop(self) -> None:
        """End all of it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
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

    def _give_up(self) -> None:
        """Answer whoever has waited for long enough; they have all begun in order."""
        self._timer, loop = None, asyncio.get_running_loop()
        now_s = loop.time()
        for waiter, give_up_s in self._patience_s.items():
            if give_up_s > now_s:
                self._timer = loop.call_at(give_up_s, self._give_up)
                return
            if not waiter.done():
                waiter.set_result(TIMEOUT)


def in_thread(
    threads: WorkThreads, compute: Callable[[], ResultT], settle: Callable[[ResultT], Answer]
) -> Begin:
    """Return what begins work in a thread.

    Args:
        threads: Where.
        compute: Does it.
        settle: Makes an answer of what it came to, on the event loop.
    """

    def begin(finish: Finish) -> Begun:
        loop = asyncio.get_running_loop()

        def work() -> None:
            try:
                make = partial(settle, giving_way(compute))
            except BaseException as error:  # noqa: BLE001 - is raised where somebody waits for it
                make = partial(_raised, error)
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(finish, make)

        return threads.begin(work)

    return begin


def _raised(error: BaseException) -> Answer:
    raise error


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
