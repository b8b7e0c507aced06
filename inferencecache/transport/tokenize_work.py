"""Tokenizations under way: each prompt once, never too many, none waited for too long."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from inferencecache.picker.prompt.blocks import NoBlocks, PromptBlocks

Answer = PromptBlocks | NoBlocks

TIMEOUT: Final = NoBlocks(why="tokenizer_timeout")


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
        self._running: dict[bytes, asyncio.Task[Answer]] = {}

    def __len__(self) -> int:
        return len(self._running)

    async def answer(self, name: bytes, start: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """Return the blocks of the prompt called *name*.

        Args:
            name: Of the prompt; where it is under way already, that is waited for.
            start: Begins it.
        """
        task = self._running.get(name)
        if task is None:
            if len(self._running) >= self._waiting_max:
                return TIMEOUT
            task = self._running[name] = asyncio.get_running_loop().create_task(start())
            task.add_done_callback(lambda _: self._running.pop(name))
        done, _ = await asyncio.wait({task}, timeout=self._timeout_s)
        return task.result() if done else TIMEOUT

    async def stop(self) -> None:
        """End all of it."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
