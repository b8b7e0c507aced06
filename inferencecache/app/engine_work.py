"""Let a simulated engine work in real time: requests in, their first and their last token out."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Generic, TypeVar

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.simulation import Computed, EngineCompute, FirstToken, Job
from inferencecache.simulation.engine_compute import Step
from inferencecache.transport.openai_listener import ModelGoneError

PromptT = TypeVar("PromptT")
ChangeT = TypeVar("ChangeT")


class Work:
    """One request that an engine has."""

    def __init__(self) -> None:
        self._moved = asyncio.Event()
        self._cached_tokens = 0
        self._has_answered = self._is_finished = self._is_lost = False

    @property
    def is_over(self) -> bool:
        """Whether the engine has no more to do with it."""
        return self._is_finished or self._is_lost

    async def first_token(self) -> int:
        """Wait for the first token; return how many tokens of the prompt were cached.

        Raises:
            ModelGoneError: The engine has ended.
        """
        await self._until(lambda: self._has_answered)
        return self._cached_tokens

    async def finished(self) -> None:
        """Wait for the last token.

        Raises:
            ModelGoneError: The engine has ended.
        """
        await self._until(lambda: self._is_finished)

    async def pause(self, seconds: float) -> None:
        """Wait for *seconds*, in which the engine makes more of the answer.

        Raises:
            ModelGoneError: The engine has ended.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._until(lambda: False)
        except TimeoutError:
            return

    def computed(self, cached_tokens: int) -> None:
        """Note that the prompt is computed."""
        self._cached_tokens = cached_tokens

    def answered(self) -> None:
        """Note the first token."""
        self._has_answered = True
        self._moved.set()

    def finish(self) -> None:
        """Note the last token."""
        self._is_finished = True
        self._moved.set()

    def lose(self) -> None:
        """Note that the engine has ended."""
        self._is_lost = True
        self._moved.set()

    async def _until(self, is_true: Callable[[], bool]) -> None:
        while not is_true():
            if self._is_lost:
                raise ModelGoneError
            self._moved.clear()
            await self._moved.wait()


class EngineWork(Generic[PromptT, ChangeT]):
    """Drives an engine's computing by the clock.

    Args:
        compute: The engine.
        clock: Monotonic time.
        send: Publishes what a computed prompt has changed.
    """

    def __init__(
        self,
        compute: EngineCompute[PromptT, ChangeT],
        clock: Clock,
        send: Callable[[ChangeT], Awaitable[None]],
    ) -> None:
        self._compute = compute
        self._clock = clock
        self._send = send
        self._works: dict[int, Work] = {}
        self._number = 0
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Requests that are not begun."""
        return self._compute.waiting

    @property
    def running(self) -> int:
        """Requests that are computed or answered."""
        return self._compute.running

    def start(self) -> None:
        """Begin to work."""
        self._task = asyncio.create_task(self._run(), name="engine-work")

    async def stop(self) -> None:
        """Lose every request and work no more; nothing if it does not work.

        Raises:
            Exception: Whatever broke its work.
        """
        self._lose_all()  # a task that is cancelled before it began would lose nothing
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    @asynccontextmanager
    async def request(
        self, prompt: PromptT, prompt_tokens: int, output_tokens: int
    ) -> AsyncIterator[Work]:
        """Hand a request to the engine for the length of a ``with`` block, whose end cancels it.

        Args:
            prompt: What the cache knows it by.
            prompt_tokens: Length of the prompt, >= 1.
            output_tokens: Length of the answer, >= 1.

        Raises:
            ModelGoneError: The engine does not work.
        """
        if self._task is None or self._task.done():
            raise ModelGoneError
        self._number += 1
        number, work = self._number, Work()
        self._works[number] = work
        job = Job(
            number=number, prompt=prompt, prompt_tokens=prompt_tokens, output_tokens=output_tokens
        )
        self._compute.submit(job, self._clock.monotonic_ns())
        self._asked.set()
        try:
            yield work
        finally:
            del self._works[number]
            if not work.is_over:
                self._compute.cancel(number, self._clock.monotonic_ns())
                self._asked.set()

    async def _run(self) -> None:
        """Do what is due, for ever; whatever ends it, nobody waits for an answer any more."""
        try:
            while True:
                self._asked.clear()
                for step in self._compute.advance(self._clock.monotonic_ns()):
                    await self._take(step)
                await self._wait(self._compute.due_ns)
        finally:
            self._lose_all()

    def _lose_all(self) -> None:
        self._compute.lose_all()
        for work in self._works.values():
            work.lose()

    async def _wait(self, due_ns: int | None) -> None:
        """Return when something is due, or asked for."""
        wait_s = None
        if due_ns is not None:
            wait_s = max(0, due_ns - self._clock.monotonic_ns()) / NS_PER_S
        try:
            async with asyncio.timeout(wait_s):
                await self._asked.wait()
        except TimeoutError:
            return

    async def _take(self, step: Step[PromptT, ChangeT]) -> None:
        work = self._works.get(step.job.number)
        if isinstance(step, Computed):
            await self._send(step.change)
            if work is not None:
                work.computed(step.cached_tokens)
        elif work is None:
            return
        elif isinstance(step, FirstToken):
            work.answered()
        else:
            work.finish()
