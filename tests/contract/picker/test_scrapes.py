"""The load that engines say of themselves, read off real pages over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from engine_page import engine_page, vllm_page
from fleets import row, worker_set
from picker_texts import MODELS
from picker_texts import worker_set as worker_set_text
from served_fleet import serve_fleet
from served_picker import until
from served_plane import Recorder

from inferencecache.clock import NS_PER_MS
from inferencecache.picker.fleet import EngineKind, WorkerSet
from inferencecache.picker.load import EngineSignal, EngineSignals
from inferencecache.settings.picker_load import PickerLoadSettings
from inferencecache.transport.picker_scrape import EngineScrapes
from inferencecache.transport.system_clock import SystemClock

FAST = PickerLoadSettings(scrape_interval_ns=NS_PER_MS, scrapes_max=2)
SGLANG = """\
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs 3
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs 4
# TYPE sglang:token_usage gauge
sglang:token_usage 0.5
"""


def members(*urls: str, engine: EngineKind = EngineKind.VLLM) -> list[WorkerSet]:
    """Return a worker set with an endpoint per page, ``0:1``, ``1:1`` and so on."""
    plain = worker_set("s", row("m"), addresses=[f"{number}:1" for number in range(len(urls))])
    endpoints = [
        replace(endpoint, metrics_url=url)
        for endpoint, url in zip(plain.endpoints, urls, strict=True)
    ]
    return [replace(plain, endpoints=tuple(endpoints), engine=engine)]


class Scraping:
    """Scrapes that are running, and what they say."""

    def __init__(self, settings: PickerLoadSettings) -> None:
        self.signals = EngineSignals(settings.signal_stale_ns)
        self.recorder = Recorder()
        self.clock = SystemClock()
        self.scrapes = EngineScrapes(settings, self.signals, self.clock, self.recorder)

    def of(self, name: str) -> EngineSignal | None:
        """Return what is known of an engine."""
        return self.signals.of(name, self.clock.monotonic_ns())

    def results(self) -> dict[str, float]:
        """Return how many pages were read, by result."""
        return {labels[0]: count for labels, count in self.scrapes.families()[0].numbers.items()}


@asynccontextmanager
async def scraping(
    watched: Iterable[WorkerSet], settings: PickerLoadSettings = FAST
) -> AsyncIterator[Scraping]:
    """Scrape for the length of the block."""
    found = Scraping(settings)
    found.scrapes.watch(watched)
    task = asyncio.create_task(found.scrapes.run())
    try:
        yield found
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_engines_say_is_known() -> None:
    """Of vLLM and of SGLang, each by its own names, and it changes with the page."""
    async with engine_page() as vllm, scraping(members(vllm.url)) as found:
        vllm.text = vllm_page(running=5, waiting=7)
        await until(lambda: found.of("0:1") == EngineSignal(waiting=7, running=5))
        vllm.text = vllm_page(running=1, waiting=0)
        await until(lambda: found.of("0:1") == EngineSignal(waiting=0, running=1))
    async with engine_page() as page:
        page.text = SGLANG
        async with scraping(members(page.url, engine=EngineKind.SGLANG)) as found:
            expected = EngineSignal(waiting=4, running=3, cache_usage=0.5)
            await until(lambda: found.of("0:1") == expected)


async def test_one_that_does_not_answer_harms_nobody() -> None:
    """The others go on being read; it is told once, and once more when it is back."""
    async with engine_page() as good, engine_page() as bad:
        bad.status = 500
        async with scraping(members(good.url, bad.url, "http://127.0.0.1:1/")) as found:
            await until(lambda: found.results().get("failed", 0) > 20)
            assert found.of("0:1") is not None
            assert found.of("1:1") is None
            told = [fields["candidate"] for _, fields in found.recorder.lines]
            assert sorted(told) == ["1:1", "2:1"]
            bad.status = 200
            await until(lambda: found.of("1:1") is not None)
            assert ("picker_engine_readable", {"candidate": "1:1"}) in found.recorder.lines


async def test_a_page_of_something_else_says_nothing() -> None:
    """It is counted as such."""
    async with engine_page() as page, scraping(members(page.url)) as found:
        page.text = "# TYPE a gauge\na 1\n"
        await until(lambda: found.results().get("empty", 0) > 3)


async def test_whoever_leaves_the_fleet_is_read_no_more() -> None:
    """And whoever comes is read at once, by those who were idle."""
    async with engine_page() as old, engine_page() as new, scraping([]) as found:
        found.scrapes.watch(members(old.url))
        await until(lambda: old.asked > 2)
        found.scrapes.watch(members(new.url))
        await until(lambda: new.asked > 2)
        asked = old.asked
        await until(lambda: new.asked > 20)
        assert old.asked <= asked + 1


async def test_nothing_is_read_where_that_is_switched_off() -> None:
    """An interval of 0."""
    off = replace(FAST, scrape_interval_ns=0)
    async with engine_page() as page, scraping(members(page.url), off) as found:
        idle = asyncio.create_task(found.scrapes.run())
        await asyncio.sleep(0)
        idle.cancel()
        assert (page.asked, found.results()) == (0, {})


async def test_no_more_pages_at_once_than_allowed() -> None:
    """Two readers, six engines that never answer: two connections at a time."""
    under_way, most = 0, 0

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await reader.read()
        under_way -= 1
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    urls = [f"http://127.0.0.1:{port}/{number}" for number in range(6)]
    settings = replace(FAST, scrape_timeout_ns=20 * NS_PER_MS)
    async with server, scraping(members(*urls), settings) as found:
        await until(lambda: found.results().get("failed", 0) >= 12)
    assert most <= 2


async def test_a_server_asks_the_engines_of_its_files(tmp_path: Path) -> None:
    """A worker set names the page; what it says ranks, is explained and is counted."""
    async with engine_page() as page:
        page.text = vllm_page(running=1, waiting=5)
        endpoints = (
            f"endpoints: [{{name: a, address: 'a:1', metricsURL: '{page.url}'}}, "
            "{name: b, address: 'b:1'}]"
        )
        document = worker_set_text(f"{{{MODELS}, {endpoints}}}")
        async with serve_fleet(tmp_path, document, picker_load=FAST) as served:
            knowledge = served.server.picker.fleet.knowledge
            await until(lambda: len(knowledge.signals) == 1)
            answer = await served.explained(b'{"model": "qwen", "prompt": []}')
            rows = {row["name"]: row for row in answer["explanation"]["candidates"]}
            assert (rows["a:1"]["waiting"], rows["a:1"]["estimatedMs"]) == (5, 50 + 6 + 100)
            assert answer["destination"] == "b:1"
            assert "inferencecache_picker_engines_heard 1.0" in await served.metrics()
