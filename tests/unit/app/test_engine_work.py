"""An engine's work in real time, and what becomes of requests when it breaks."""

import asyncio

import pytest

from inferencecache.app.engine_work import EngineWork
from inferencecache.simulation import ComputeRules, EngineCompute
from inferencecache.transport.openai_listener import ModelGoneError
from inferencecache.transport.system_clock import SystemClock

AT_ONCE = ComputeRules(
    prefill_tokens_per_s=1_000_000_000, base_ns=0, decode_token_ns=0, concurrency_max=8
)
NEVER = ComputeRules(prefill_tokens_per_s=1, base_ns=0, decode_token_ns=0, concurrency_max=8)


class Cache:
    """Has half of every prompt."""

    def matched_tokens(self, prompt: str, /) -> int:
        """Return half of its length."""
        return len(prompt) // 2

    def store(self, prompt: str, /) -> str:
        """Return the prompt."""
        return prompt


def work_of(rules: ComputeRules, sent: list[str]) -> EngineWork[str, str]:
    """Return work whose changes end up in *sent*; the change ``bad`` breaks it."""

    async def send(change: str) -> None:
        if change == "bad":
            raise ValueError(change)
        sent.append(change)

    return EngineWork(EngineCompute(rules, Cache()), SystemClock(), send)


async def test_requests_are_answered_after_what_they_changed_was_said() -> None:
    """Each with what was cached of it."""
    sent: list[str] = []
    work = work_of(AT_ONCE, sent)
    work.start()
    async with work.request("prompt", 6, 2) as one:
        cached_tokens = await one.first_token()
        said = list(sent)
        await one.finished()
    await work.stop()

    assert cached_tokens == 3
    assert said == ["prompt"]
    assert one.is_over


async def test_whoever_leaves_is_cancelled() -> None:
    """The engine is idle as soon as the block ends."""
    work = work_of(NEVER, [])
    work.start()
    async with work.request("prompt", 1_000, 1), work.request("other", 1_000, 1):
        assert (work.running, work.waiting) == (1, 1)
    assert (work.running, work.waiting) == (0, 0)
    await work.stop()


async def test_stopping_loses_requests() -> None:
    """Those that run, and those that come afterwards."""
    work = work_of(NEVER, [])
    work.start()
    async with work.request("prompt", 1_000, 1) as one:
        waiting = asyncio.create_task(one.first_token())
        await work.stop()
        with pytest.raises(ModelGoneError):
            await waiting
    with pytest.raises(ModelGoneError):
        async with work.request("prompt", 1_000, 1):
            raise AssertionError


async def test_work_that_breaks_keeps_nobody_waiting() -> None:
    """What broke it comes out when it is stopped."""
    work = work_of(AT_ONCE, [])
    work.start()
    async with work.request("bad", 3, 1) as one:
        with pytest.raises(ModelGoneError):
            await one.first_token()
    with pytest.raises(ModelGoneError):
        async with work.request("prompt", 6, 1):
            raise AssertionError
    with pytest.raises(ValueError, match="bad"):
        await work.stop()
