"""A producer on real sockets: the load signal, and an engine that works in silence."""

import asyncio
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import pytest
from engine_page import EnginePage, engine_page, vllm_page
from engine_payloads import T16, batch, map_clear, map_store
from followed import LIMIT_S, MODEL, REPLICA, TENANT, Rig, rig

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.types import StatsReport

SOON_NS = 20 * NS_PER_MS


def beside(page: EnginePage, **fields: object) -> AbstractAsyncContextManager[Rig]:
    """Run a producer that reads *page* all the time."""
    fields = {"stats_interval_ns": SOON_NS, "metrics_url": page.url, **fields}
    return rig(replay=False, **fields)


def stats(found: Rig) -> StatsReport | None:
    """Return the replica's numbers at the server."""
    state = found.server.plane.index.stats_of(TENANT, MODEL).get(REPLICA)
    return None if state is None else state.stats


async def reported(found: Rig, pressure: float) -> None:
    """Wait until the server has numbers with *pressure*."""
    await found.until(
        lambda: (
            (numbers := stats(found)) is not None and numbers.pressure == pytest.approx(pressure)
        )
    )


async def test_running_and_waiting_requests_become_pressure() -> None:
    """The sum over the ceiling, again and again."""
    async with engine_page() as page, beside(page) as found:
        page.text = vllm_page(running=60, waiting=4, queries=1000, hits=100)
        await reported(found, 0.25)
        page.text = vllm_page(running=128, waiting=0, queries=1200, hits=250)
        await reported(found, 0.5)


async def test_a_page_that_breaks_off_still_counts() -> None:
    """What came before the cut is read."""
    async with engine_page() as page, beside(page) as found:
        page.is_cut = True
        page.text = vllm_page(running=64) + "# TYPE vllm:e2e_request_latency_seco"
        await reported(found, 0.25)


async def test_three_failures_make_the_signal_stale_and_one_success_heals_it() -> None:
    """The operator is told once of each."""
    async with engine_page() as page, beside(page) as found:
        page.status = 500
        async with asyncio.timeout(LIMIT_S):
            await found.producer.until(lambda: "load_signal_stale" in found.log.events)
        page.status = 200
        async with asyncio.timeout(LIMIT_S):
            await found.producer.until(lambda: "load_signal_recovered" in found.log.events)

        assert found.log.events.count("load_signal_stale") == 1


async def test_stale_numbers_are_told_to_nobody_again() -> None:
    """After a clear, at a server that starts anew for example, they would look like new ones."""
    async with engine_page() as page, beside(page) as found:
        page.text = vllm_page(running=64)
        await found.synced()
        await reported(found, 0.25)
        page.status = 500
        await found.until(lambda: "load_signal_stale" in found.log.events)
        await found.engine.publish(batch(map_store([1], T16), map_clear()))
        await found.settled(1)
        assert stats(found) is None

        page.status = 200
        await reported(found, 0.25)


async def test_a_page_without_load_gauges_makes_no_report() -> None:
    """What is unknown is not reported as idle."""
    async with engine_page() as page, beside(page) as found:
        page.text = "# TYPE other gauge\nother 1\n"
        async with asyncio.timeout(LIMIT_S):
            await found.producer.until(lambda: "load_signal_stale" in found.log.events)

        assert stats(found) is None


async def test_a_clear_is_followed_by_the_numbers_at_once() -> None:
    """The server forgets a cleared replica's numbers; they are there again without an interval."""
    async with engine_page() as page:
        page.text = vllm_page(running=64)
        hour_ns = 3_600_000 * NS_PER_MS
        async with beside(page, stats_interval_ns=hour_ns) as found:
            await found.synced()
            await reported(found, 0.25)
            before = page.asked
            await found.engine.publish(batch(map_store([1], T16), map_clear()))
            await found.settled(1)
            while page.asked == before:
                page.was_asked.clear()
                await asyncio.wait_for(page.was_asked.wait(), LIMIT_S)

            assert stats(found) is not None


async def test_clears_in_a_row_do_not_wear_out_the_page() -> None:
    """An engine that clears all the time is asked about once a second."""
    async with AsyncExitStack() as stack:
        page = await stack.enter_async_context(engine_page())
        page.text = vllm_page(running=64)
        found = await stack.enter_async_context(beside(page, stats_interval_ns=3_600 * NS_PER_S))
        await found.synced()
        await reported(found, 0.25)
        started_s, before = time.monotonic(), page.asked
        for number in range(100):
            await found.engine.publish(batch(map_clear(), ts=1_000.0 + number))
            await found.settled(number + 1)

        elapsed_s = time.monotonic() - started_s
        assert page.asked - before <= 1 + elapsed_s


async def test_an_engine_that_computes_and_says_nothing_is_reported() -> None:
    """Tokens looked up and not found must become blocks; a wrong topic shows like this."""
    async with engine_page() as page, beside(page, silent_after_ns=SOON_NS) as found:
        page.text = vllm_page(running=1, queries=100)
        await reported(found, 1 / 256)
        page.text = vllm_page(running=1, queries=10_000)
        async with asyncio.timeout(LIMIT_S):
            await found.producer.until(lambda: "engine_silent" in found.log.events)
        await found.synced()
        await found.engine.publish(batch(map_store([1], T16)))
        await found.settled(1)

        assert found.log.events.count("engine_silent") == 1


async def test_an_idle_engine_is_not_reported_as_silent() -> None:
    """Prompts served whole from the cache make no events, and neither does an idle engine."""
    async with engine_page() as page, beside(page, silent_after_ns=NS_PER_MS) as found:
        page.text = vllm_page(running=1, queries=100, hits=90)
        await reported(found, 1 / 256)
        page.text = vllm_page(running=2, queries=1100, hits=1090)
        await reported(found, 2 / 256)
        for _ in range(3):
            page.was_asked.clear()
            await asyncio.wait_for(page.was_asked.wait(), LIMIT_S)

        assert "engine_silent" not in found.log.events
