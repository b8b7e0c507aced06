"""Tokenizers whose work ends when a test says so."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from inferencecache.clock import NS_PER_S


class ScriptedWork:
    """One tokenization; done from the start unless it has no result yet."""

    def __init__(self, result: Sequence[int] | None, waiting: asyncio.Event) -> None:
        self.result = result
        self._waiting = waiting

    def is_done(self) -> bool:
        """Return whether there is a result."""
        return self.result is not None

    def token_ids(self) -> Sequence[int]:
        """Return the result."""
        return self.result or ()

    async def wait(self, timeout_ns: int) -> None:
        """Wait as long as allowed."""
        self._waiting.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ns / NS_PER_S):
                await asyncio.Event().wait()


class ScriptedTokenizer:
    """Answers every prompt with the same tokens; with None, never."""

    def __init__(self, result: Sequence[int] | None, models: Sequence[str] = ("m1",)) -> None:
        self.result = result
        self.models = models
        self.calls: list[tuple[str, str]] = []
        self.waiting = asyncio.Event()

    def start(self, model_id: str, prompt_text: str) -> ScriptedWork | None:
        """Begin, for a known model."""
        self.calls.append((model_id, prompt_text))
        return ScriptedWork(self.result, self.waiting) if model_id in self.models else None
