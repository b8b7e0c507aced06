"""The load that engines say of themselves, read off real pages over HTTP."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from engine_page import engine_page, vllm_page
from fleets import row, worker_set
from picker_texts import MODELS
from picker_texts import worker_set as worker_set_text
from served_fleet import serve_fleet
from served_picker import until
from served_plane import Recorder

from inferencecache.clock import NS_PER_MS
from inferencecache.events.engine_metrics import Sample
from inferencecache.picker.fleet import EngineKind, WorkerSet
from inferencecache.picker.load import EngineSignal, EngineSignals
from inferencecache.settings.picker_load import PickerLoadSettings
from inferencecache.transport import picker_scrape
from inferencecache.transport.engine_scrape import parse_page
from inferencecache.transport.picker_scrape import EngineScrapes
from inferencecache.transport.system_clock import SystemClock

FAST = PickerLoadSettings(scrape_interval_ns=NS_PER_MS, scrapes_max=2)
ADAPTERS_FIRST = """\
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins: [{type: lora-affinity-scorer}]
"""
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


async def test_a_page_may_be_as_long_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    """So much of it is read, so many series count, and not where all the others are served."""
    threads: set[threading.Thread] = set()

    def noted(text: str) -> list[Sample]:
        threads.add(threading.current_thread())
        return parse_page(text)

    monkeypatch.setattr(picker_scrape, "parse_page", noted)
    bounded = replace(FAST, scrape_series_max=3, scrape_bytes_max=2_048)
    async with engine_page() as page, scraping(members(page.url), bounded) as found:
        page.text = "# TYPE vllm:num_requests_running gauge\n" + "".join(
            f'vllm:num_requests_running{{engine="{number}"}} 1\n' for number in range(10)
        )
        await until(lambda: found.of("0:1") == EngineSignal(running=3))
        late = "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 7\n"
        page.text = vllm_page(running=4) + f"# {'x' * 2_048}\n" + late
        await until(lambda: found.of("0:1") == EngineSignal(running=4, waiting=0))
    assert threads
    assert threading.main_thread() not in threads
    assert page.headers["Accept-Encoding"] == "identity", "what is compressed is of any length"


async def test_a_page_that_fails_again_and_again_is_read_less_and_less_often() -> None:
    """Each pause is twice as long, so those that hang leave the readers to the others."""
    async with engine_page() as good, engine_page() as bad:
        bad.status = 500
        async with scraping(members(good.url, bad.url)) as found:
            await until(lambda: good.asked > 200)
            assert 3 <= bad.asked <= 20
        brief = replace(FAST, scrape_pause_max_ns=2 * NS_PER_MS)
        async with scraping(members(bad.url), brief) as found:
            await until(lambda: found.results().get("failed", 0) > 40)


async def test_adapters_are_known_and_lead(tmp_path: Path) -> None:
    """Of two engines, the request for an adapter goes to the one that works with it."""
    lora = (
        "# TYPE vllm:lora_requests_info gauge\n"
        'vllm:lora_requests_info{{max_lora="1",running_lora_adapters="{running}",'
        'waiting_lora_adapters=""}} 1.7e9\n'
    )
    async with engine_page() as one, engine_page() as two:
        one.text += lora.format(running="other")
        two.text += lora.format(running="sql")
        document = worker_set_text(
            "{models: [{name: qwen}, {name: sql, adapterOf: qwen}], endpoints: ["
            f"{{name: a, address: 'a:1', metricsURL: '{one.url}'}}, "
            f"{{name: b, address: 'b:1', metricsURL: '{two.url}'}}]}}"
        )
        async with serve_fleet(tmp_path, document, ADAPTERS_FIRST, picker_load=FAST) as served:
            knowledge = served.server.picker.fleet.knowledge
            await until(lambda: len(knowledge.signals) == 2)
            answer = await served.explained(b'{"model": "sql", "prompt": []}')
            rows = {row["name"]: row["score"] for row in answer["explanation"]["candidates"]}
            assert (answer["destination"], rows) == ("b:1", {"a:1": 0.0, "b:1": 1.0})


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
