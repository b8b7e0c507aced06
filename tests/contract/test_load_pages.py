"""What an engine's page says, fetched over HTTP and read page after page, becomes a report."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
from engine_page import EnginePage, engine_page
from followed import Lines

from inferencecache.app.producer_load import LoadParts, LoadSignal
from inferencecache.clock import ManualClock
from inferencecache.settings.producer import LoadSettings
from inferencecache.settings.subscribe import EngineSettings, SourceSettings
from inferencecache.transport.engine_scrape import PageScraper
from inferencecache.types import StatsReport

RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"
QUERIES, HITS = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"


@dataclass
class Desk:
    """A load signal and what it reported."""

    page: EnginePage
    signal: LoadSignal
    reports: list[StatsReport | None] = field(default_factory=list)

    async def look(self, text: str) -> StatsReport | None:
        """Serve *text*, look once, and return the report, if there was one."""
        self.page.text = text
        self.reports.clear()
        await self.signal.look()
        return self.reports[-1] if self.reports else None


@asynccontextmanager
async def desk(hash_scheme: str = "vllm", model: str = "") -> AsyncIterator[Desk]:
    """Run a page and read it."""
    settings = SourceSettings(
        engine=EngineSettings(replica_id="r", hash_scheme=hash_scheme),
        load=LoadSettings(engine_model_name=model, concurrency_ceiling=100),
    )
    reports: list[StatsReport | None] = []
    async with engine_page() as page, aiohttp.ClientSession() as session:
        parts = LoadParts(
            settings=settings,
            scraper=PageScraper(page.url, session),
            report=reports.append,
            heard=lambda: 0,
            clock=ManualClock(),
            log=Lines(),
            changed=lambda: None,
        )
        yield Desk(page, LoadSignal(parts), reports)


def gauges(*series: tuple[str, str, float]) -> str:
    """Return a page of gauges and counters: name, labels, value."""
    lines, seen = [], set()
    for name, labels, value in series:
        if name not in seen:
            seen.add(name)
            kind = "counter" if name.endswith("_total") else "gauge"
            lines.append(f"# TYPE {name} {kind}")
        lines.append(f"{name}{{{labels}}} {value}")
    return "".join(f"{line}\n" for line in lines)


def busy(*counters: tuple[str, str, float]) -> str:
    """Return a page with 20 requests and *counters*."""
    return gauges((RUNNING, "", 15), (WAITING, "", 5), *counters)


async def test_the_hit_rate_is_that_between_two_pages() -> None:
    """0 at first, after a reset and without queries; a missing or broken counter is no spike."""
    pages: list[tuple[float | None, float | None, float]] = [
        (100, 200, 0.0),
        (175, 300, 0.75),
        (175, 300, 0.0),
        (175, None, 0.0),
        (200, 350, 0.5),
        (5, 10, 0.0),
        (6, 14, 0.25),
        (float("nan"), 20, 0.0),
        (9, 20, 0.5),
    ]
    async with desk() as found:
        for hits, queries, rate in pages:
            counters = [(HITS, hits), (QUERIES, queries)]
            text = busy(*((name, "", value) for name, value in counters if value is not None))
            report = await found.look(text)

            assert report is not None
            assert report.hit_rate == pytest.approx(rate), (hits, queries)
            assert report.pressure == pytest.approx(0.2)


SERIES: dict[str, tuple[str, str, str, float | None]] = {
    "one of each": ("vllm", "", "running 30; waiting 20", 0.5),
    "no waiting gauge": ("vllm", "", "running engine=0 30; running engine=1 20", None),
    "two schedulers": ("vllm", "", "running engine=0 30; running engine=1 5; waiting 0", 0.35),
    "not a number": ("vllm", "", "running nan; waiting 3", None),
    "beyond the ceiling": ("vllm", "", "running 400; waiting 3", 1.0),
    "another model": (
        *("vllm", "a"),
        "running model_name=a 10; running model_name=b 70; waiting model_name=a 1",
        0.11,
    ),
    "no model label": ("vllm", "a", "running 10; waiting 1", None),
    "ranks of one scheduler": (
        *("sglang", ""),
        "running tp_rank=0 10; running tp_rank=1 10; waiting tp_rank=0 4; waiting tp_rank=1 4",
        0.14,
    ),
    "parts by priority": (
        *("sglang", ""),
        "running 10; waiting 8; waiting priority=1 3; waiting priority=2 5",
        0.18,
    ),
    "another engine's page": ("sglang", "", "vllm:num_requests_running 10", None),
}
NAMES = {
    ("vllm", "running"): RUNNING,
    ("vllm", "waiting"): WAITING,
    ("sglang", "running"): "sglang:num_running_reqs",
    ("sglang", "waiting"): "sglang:num_queue_reqs",
}


def series(scheme: str, text: str) -> list[tuple[str, str, float]]:
    """Return name, labels and value of each series in the short form above."""
    found = []
    for one in text.split("; "):
        name, *labels, value = one.split(" ")
        packed = ",".join(
            f'{label}="{content}"' for label, content in (pair.split("=") for pair in labels)
        )
        found.append((NAMES.get((scheme, name), name), packed, float(value)))
    return found


@pytest.mark.parametrize("name", SERIES)
async def test_series_of_one_engine_become_one_pressure(name: str) -> None:
    """Schedulers add up; ranks, priorities and other models do not; without a gauge no report."""
    scheme, model, text, pressure = SERIES[name]
    async with desk(scheme, model) as found:
        report = await found.look(gauges(*series(scheme, text)))

    assert (report is None) == (pressure is None)
    if report is not None:
        assert report.pressure == pytest.approx(pressure)
