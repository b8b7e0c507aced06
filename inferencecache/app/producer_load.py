"""One engine's metrics page to its replicas' numbers, at an interval and right after a clear."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.events.engine_metrics import (
    EngineLoad,
    LoadTracker,
    engine_kind_of,
    read_load,
)
from inferencecache.settings.subscribe import SourceSettings
from inferencecache.transport.engine_scrape import PageScraper, ScrapeError, parse_page
from inferencecache.transport.engine_scrape_silence import SilenceWatch
from inferencecache.transport.structured_log import EventLog
from inferencecache.types import StatsReport

_STALE_AFTER: Final = 3
_PAUSE_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadParts:
    """What a load signal works with.

    Attributes:
        settings: The engine.
        scraper: Fetches its page.
        report: Takes the replica's numbers; None where the last ones are stale.
        heard: Returns how many messages the engine has published, as far as is known.
        clock: Time.
        log: Where an operator is told of a signal that went stale.
        changed: Called after every look.
    """

    settings: SourceSettings
    scraper: PageScraper
    report: Callable[[StatsReport | None], None]
    heard: Callable[[], int]
    clock: Clock
    log: EventLog
    changed: Callable[[], None]


class LoadSignal:
    """Looks at one page again and again.

    Args:
        parts: What it works with.

    Attributes:
        scrapes: Looks so far.
        failures: Of these, without a report.
        is_stale: The last three had none.
        is_silent: The engine works and publishes nothing.
    """

    def __init__(self, parts: LoadParts) -> None:
        self.scrapes = 0
        self.failures = 0
        self.is_stale = False
        self.is_silent = False
        self._parts = parts
        self._kind = engine_kind_of(parts.settings.engine.hash_scheme)
        self._tracker = LoadTracker(parts.settings.load)
        self._silence = SilenceWatch(
            parts.settings.engine.silent_after_ns, parts.settings.mapper.block_size_tokens
        )
        self._failures_in_row = 0
        self._wanted = asyncio.Event()

    def want(self) -> None:
        """Look again soon, whatever the interval, but not all the time."""
        self._wanted.set()

    async def run(self) -> None:
        """Look for ever; ends by being cancelled."""
        interval_s = self._parts.settings.engine.stats_interval_ns / NS_PER_S
        pause_s = min(interval_s, _PAUSE_S)
        while True:
            self._wanted.clear()
            await self.look()
            await asyncio.sleep(pause_s)
            try:
                async with asyncio.timeout(interval_s - pause_s):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    async def look(self) -> None:
        """Look once."""
        self.scrapes += 1
        try:
            text = await self._parts.scraper.fetch()
        except ScrapeError as error:
            self._fail(error.reason)
        else:
            samples = await asyncio.to_thread(parse_page, text)
            self._read(read_load(self._kind, samples, self._parts.settings.load))
        self._parts.changed()

    def _read(self, load: EngineLoad) -> None:
        self._watch_silence(load)
        report = self._tracker.report(load)
        if report is None:
            absent = "no known metric" if load.is_empty else "no load gauges"
            self._fail(f"{absent} on the page")
            return
        self._parts.report(report)
        self._failures_in_row = 0
        if self.is_stale:
            self.is_stale = False
            self._parts.log.info("load_signal_recovered", replica=self._name)

    def _fail(self, reason: str) -> None:
        self.failures += 1
        self._failures_in_row += 1
        if self._failures_in_row < _STALE_AFTER:
            self._parts.log.warning("load_signal_failed", replica=self._name, reason=reason)
        elif not self.is_stale:
            self.is_stale = True
            self._parts.report(None)
            self._parts.log.error("load_signal_stale", replica=self._name, reason=reason)

    def _watch_silence(self, load: EngineLoad) -> None:
        was_silent = self.is_silent
        now_ns = self._parts.clock.monotonic_ns()
        self.is_silent = self._silence.look(load, self._parts.heard(), now_ns)
        if self.is_silent and not was_silent:
            self._parts.log.error(
                "engine_silent",
                replica=self._name,
                reason="requests are served but no event arrives: "
                "check the topic, the endpoint and that events are enabled",
            )

    @property
    def _name(self) -> str:
        return self._parts.settings.engine.replica_id
