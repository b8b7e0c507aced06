"""Read how busy engines are off their pages of metrics, again and again, beside the Picks.

Rules of this file: each page is read by one reader at a time, and no more pages at once than the
settings allow, so a slow engine delays others and never piles up; one that fails again and again
is asked less and less often. What fails is nothing new: the last signal counts until it is stale,
and then the picker goes by what it has given out itself. A page may say anything: it is taken apart
in a thread, one page at a time, up to a length, and not without a pause.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Final

import aiohttp

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.events.engine_metrics import LOAD_SERIES, EngineKind, EngineLoad, read_load
from inferencecache.picker.fleet import EngineKind as Engine
from inferencecache.picker.fleet import Member, WorkerSet
from inferencecache.picker.load import EngineSignal, EngineSignals
from inferencecache.settings.picker_load import PickerLoadSettings
from inferencecache.settings.producer import LoadSettings
from inferencecache.transport import picker_catalog as catalog
from inferencecache.transport.engine_scrape import (
    PageScraper,
    ScrapeError,
    only_series,
    parse_page,
)
from inferencecache.transport.metric_cells import Counts, Family
from inferencecache.transport.structured_log import EventLog

_COUNT_MAX: Final = 2**31 - 1
_KINDS: Final = {Engine.VLLM: EngineKind.VLLM, Engine.SGLANG: EngineKind.SGLANG}
_TOLD_AFTER: Final = 3
"""Failures in a row; one alone is nothing to tell people."""
_DOUBLINGS_MAX: Final = 40
_PLAIN: Final = {"Accept-Encoding": "identity"}
"""Nobody needs to compress a page five times a second, and what is small may be large then."""


@dataclass(slots=True)
class _Page:
    """One engine's page.

    Attributes:
        name: The candidate's.
        url: Where it is.
        kind: Whose names it has.
        failures: In a row.
    """

    name: str
    url: str
    kind: EngineKind
    failures: int = field(default=0)


class EngineScrapes:
    """Reads the pages of all engines of the fleet in force.

    Args:
        settings: How often, and how many at once.
        signals: Takes what they say.
        clock: Monotonic time.
        log: Told of engines that cannot be read.
    """

    def __init__(
        self, settings: PickerLoadSettings, signals: EngineSignals, clock: Clock, log: EventLog
    ) -> None:
        self._settings = settings
        self._signals = signals
        self._clock = clock
        self._log = log
        self._pages: dict[str, _Page] = {}
        self._due: list[tuple[float, int, _Page]] = []
        self._order = count()
        self._parsing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._results = Counts()

    def watch(self, members: Iterable[Member]) -> None:
        """Read the pages of *members* from now on, and no others.

        Complexity: O(endpoints).
        """
        before, self._pages = self._pages, {}
        for page in _pages_of(members) if self._settings.scrape_interval_ns else ():
            if page.name in self._pages:
                continue
            known = before.get(page.name)
            is_same = known is not None and (known.url, known.kind) == (page.url, page.kind)
            self._pages[page.name] = known if known is not None and is_same else page
            if not is_same:
                heappush(self._due, (0.0, next(self._order), page))
        self._changed.set()

    async def run(self) -> None:
        """Read for ever; ends by being cancelled."""
        connector = aiohttp.TCPConnector(limit=self._settings.scrapes_max)
        async with (
            aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers=_PLAIN
            ) as session,
            asyncio.TaskGroup() as readers,
        ):
            for _ in range(self._settings.scrapes_max):
                readers.create_task(self._read_on(session))

    def families(self) -> list[Family]:
        """Return a copy of all numbers."""
        return [
            Family(catalog.SCRAPES, self._results.rows()),
            Family(catalog.ENGINES_HEARD, {(): self._signals.fresh(self._clock.monotonic_ns())}),
        ]

    async def _read_on(self, session: aiohttp.ClientSession) -> None:
        """Read whatever page is due next, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            while not self._due:
                self._changed.clear()
                await self._changed.wait()
            due_s, _, page = heappop(self._due)
            await asyncio.sleep(max(0.0, due_s - loop.time()))
            if self._pages.get(page.name) is page:
                await self._read(page, session)
                pause_s = self._pause_ns(page) / NS_PER_S
                next_s = max(due_s + pause_s, loop.time() + pause_s / 2)
                heappush(self._due, (next_s, next(self._order), page))
                self._changed.set()

    def _pause_ns(self, page: _Page) -> int:
        """Return how long *page* is left alone from one look to the next."""
        settings = self._settings
        longest_ns = max(settings.scrape_pause_max_ns, settings.scrape_interval_ns)
        return min(settings.scrape_interval_ns << min(page.failures, _DOUBLINGS_MAX), longest_ns)

    async def _read(self, page: _Page, session: aiohttp.ClientSession) -> None:
        settings = self._settings
        timeout_s = settings.scrape_timeout_ns / NS_PER_S
        scraper = PageScraper(page.url, session, timeout_s, settings.scrape_bytes_max)
        try:
            text = await scraper.fetch()
        except ScrapeError as error:
            self._failed(page, "failed", error.reason)
            return
        async with self._parsing:
            load = await asyncio.to_thread(_load_of, page.kind, text, settings.scrape_series_max)
        if load.is_empty:
            self._failed(page, "empty", "the page does not say how busy the engine is")
            return
        self._results.add(("ok",))
        if page.failures >= _TOLD_AFTER:
            self._log.info("picker_engine_readable", candidate=page.name)
        page.failures = 0
        if self._pages.get(page.name) is page:
            self._signals.put(page.name, _signal(load), self._clock.monotonic_ns())

    def _failed(self, page: _Page, result: str, reason: str) -> None:
        self._results.add((result,))
        page.failures += 1
        if page.failures == _TOLD_AFTER:
            self._log.warning(
                "picker_engine_unreadable", candidate=page.name, url=page.url, reason=reason
            )


def _pages_of(members: Iterable[Member]) -> Iterator[_Page]:
    """Yield the pages of *members* that there are, and of engines whose pages can be read."""
    for member in members:
        kind = _KINDS.get(member.engine) if isinstance(member, WorkerSet) else None
        if kind is None or not isinstance(member, WorkerSet):
            continue
        for endpoint in member.endpoints:
            if endpoint.metrics_url:
                yield _Page(endpoint.address, endpoint.metrics_url, kind)


def _load_of(kind: EngineKind, text: str, series_max: int) -> EngineLoad:
    """Return what a page says; of a hostile one that takes as long as any may."""
    samples = parse_page(only_series(text, LOAD_SERIES[kind], series_max))
    return read_load(kind, samples, LoadSettings())


def _signal(load: EngineLoad) -> EngineSignal:
    signal = EngineSignal(
        waiting=_whole(load.waiting),
        running=_whole(load.running),
        cache_usage=None if load.usage_ratio is None else min(1.0, max(0.0, load.usage_ratio)),
    )
    adapters = load.adapters
    if adapters is None:
        return signal
    return signal._replace(
        adapters=adapters.running, waiting_adapters=adapters.waiting, adapters_max=adapters.room
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(min(max(value, 0.0), _COUNT_MAX))
