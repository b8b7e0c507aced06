"""A subscriber whose sink fails halfway: what it holds and what it told stay the same."""

import asyncio

import pytest
from engine_events import keys
from engine_payloads import T16, batch, map_remove, map_store
from engine_sockets import engine_sockets
from followed import LIMIT_S
from subscriber_rig import HalfwaySink, subscriber

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.types import CacheTier

T32 = [*T16, *range(16)]
FIRST = batch(map_store([1, 2], T32))
FAILING = batch(map_remove([2]), map_store([3], T16))
LAST = batch(map_remove([1]))


@pytest.mark.parametrize(
    ("has_replay", "failures", "taken_in", "requests"),
    [(False, 1, 3, []), (True, 1, 5, [0, 0]), (True, 2, 5, [0, 0])],
)
async def test_a_failed_batch_leaves_no_stale_claim(
    failures: int, taken_in: int, requests: list[int], *, has_replay: bool
) -> None:
    """All is withdrawn, and asked for again once; a batch that fails always is left behind."""
    clock, sink = ManualClock(), HalfwaySink(failures)
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        made = subscriber(engine, clock, sink, has_replay=has_replay)
        running = asyncio.create_task(made.run())
        await engine.subscribed.wait()
        if has_replay:
            await engine.requested.wait()
        await engine.publish(FIRST)
        await sink.taken_in(1)
        await engine.publish(FAILING)
        await sink.taken_in(2 + 2 * has_replay)
        await engine.publish(LAST)
        await sink.taken_in(taken_in)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert made.counters.failures == failures
    assert made.tracker.is_incomplete == (failures == 2 or not has_replay)
    assert engine.requests == requests
    is_recovered = has_replay and failures == 1
    assert sink.held() == (dict.fromkeys(keys(T16), CacheTier.T1) if is_recovered else {})


@pytest.mark.parametrize(("interval_ns", "requests"), [(0, [0, 0, 0]), (NS_PER_S, [0, 0])])
async def test_how_often_everything_is_asked_for_again_is_a_setting(
    interval_ns: int, requests: list[int]
) -> None:
    """Two failures at one moment lead to two requests, or to one where they are too close."""
    clock, sink = ManualClock(), HalfwaySink(2)
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        made = subscriber(engine, clock, sink, has_replay=True, start_over_interval_ns=interval_ns)
        running = asyncio.create_task(made.run())
        await engine.subscribed.wait()
        await engine.requested.wait()
        await engine.publish(FIRST)
        await sink.taken_in(1)
        await engine.publish(FAILING)
        await sink.taken_in(6 if interval_ns == 0 else 4)
        await engine.publish(LAST)
        await sink.taken_in(7 if interval_ns == 0 else 5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert made.counters.failures == 2
    assert engine.requests == requests


async def test_who_fails_anew_is_asked_ever_more_rarely_for_the_failures_of_others() -> None:
    """Each of two ranks on one replica would have the other asked again for ever."""
    clock, sink = ManualClock(), HalfwaySink(100)
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        made = subscriber(engine, clock, sink, has_replay=True, start_over_interval_ns=1_000)
        running = asyncio.create_task(made.run())
        await engine.subscribed.wait()
        await engine.requested.wait()
        await engine.publish(FAILING)
        published, taken_in = 1, 2
        for requests, pause in ((2, 1), (3, 2), (4, 4)):
            await sink.taken_in(taken_in)
            clock.advance_ns(pause * 1_000 - 1)
            made.ask_again()
            await engine.publish(LAST)
            published, taken_in = published + 1, taken_in + 1
            await sink.taken_in(taken_in)
            assert len(engine.requests) == requests
            clock.advance_ns(1)
            made.ask_again()
            taken_in += published
            await sink.taken_in(taken_in)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert engine.requests == [0] * 5
    assert made.counters.failures == 5
