"""One producer: engines in, servers out, from start to stop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import zmq

from inferencecache import __version__
from inferencecache.app.producer_complaints import Complaints
from inferencecache.app.producer_engine import (
    FollowedEngine,
    Surroundings,
    check_source,
    replicas_of,
)
from inferencecache.app.producer_numbers import ProducerNumbers
from inferencecache.app.producer_reach import Reach
from inferencecache.app.producer_stats import ProducerStats, ServerStats
from inferencecache.app.producer_watch import Watched
from inferencecache.clock import NS_PER_S, Clock
from inferencecache.errors import ConfigError
from inferencecache.settings.address import BindAddress
from inferencecache.settings.subscribe import ProducerSettings
from inferencecache.settings.target import check_target
from inferencecache.transport.delivery import LinkParts, ServerLink
from inferencecache.transport.delivery_tls import server_credentials
from inferencecache.transport.http_pages import PageListener
from inferencecache.transport.producer_http import ProducerView, producer_listener
from inferencecache.transport.producer_metrics import MetricsPage
from inferencecache.transport.structured_log import EventLog, StructuredLog
from inferencecache.transport.system_clock import SystemClock
from inferencecache.types import CacheTier

_UPKEEP_NS: Final = NS_PER_S
_RECLAIMED_PER_SLICE: Final = 8_192


class Producer:
    """Follows engines and tells servers what they hold.

    Args:
        settings: Everything it can be told.
        log: Where it logs.
        clock: Where it takes the time from.

    Raises:
        ConfigError: The settings make no sense together.
    """

    def __init__(
        self, settings: ProducerSettings, log: EventLog | None = None, clock: Clock | None = None
    ) -> None:
        _check(settings)
        self._settings = settings
        self._credentials = server_credentials(settings.tls)
        self._log = log or StructuredLog()
        self._clock = clock or SystemClock()
        self._complaints = Complaints(self._log)
        self._watched = Watched()
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._session: aiohttp.ClientSession | None = None
        self._engines: tuple[FollowedEngine, ...] = ()
        self._links: tuple[ServerLink, ...] = ()
        self._pages: PageListener | None = None
        self._page_address: BindAddress | None = None
        self._followers: list[asyncio.Task[None]] = []
        self._tellers: list[asyncio.Task[None]] = []

    @property
    def is_synced(self) -> bool:
        """Whether every engine is connected and its past, as far as it can be had, taken in."""
        return bool(self._engines) and all(engine.is_synced for engine in self._engines)

    @property
    def is_drained(self) -> bool:
        """Whether every server has acknowledged everything taken in so far."""
        return all(link.is_told for link in self._links)

    @property
    def stats(self) -> ProducerStats:
        """Return a copy of what has happened so far."""
        return ProducerStats(
            sources=tuple(found for engine in self._engines for found in engine.stats()),
            servers=tuple(map(_server_stats, self._links)),
        )

    @property
    def page_url(self) -> str:
        """The URL of the producer's own pages; empty if it serves none."""
        address = self._page_address
        if address is None:
            return ""
        return f"http://{BindAddress(host=address.host or '127.0.0.1', port=address.port)}"

    def held_keys(self) -> Iterator[tuple[str, str, int, CacheTier]]:
        """Yield replica, adapter, key and tier of everything held; for people, in no order."""
        for engine in self._engines:
            for replica_id, mapper in engine.feed.router.replicas():
                for (adapter_id, key), tier in mapper.held_keys().items():
                    yield replica_id, adapter_id, key, tier

    async def wait_synced(self) -> None:
        """Wait until :attr:`is_synced`; for ever if an engine never comes."""
        await self.until(lambda: self.is_synced)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until *holds* is true; it is asked again whenever anything happened here."""
        await self._watched.until(holds)

    async def drained(self) -> None:
        """Wait until every server has acknowledged everything taken in so far."""
        await self.until(lambda: self.is_drained)

    async def start(self) -> None:
        """Connect to engines and servers; returns at once, whether or not they are there.

        Raises:
            ListenError: The address of the pages cannot be had; nothing keeps running then.
        """
        self._context = zmq.Context()
        self._session = aiohttp.ClientSession()
        self._links = tuple(map(self._link, self._settings.delivery.targets()))
        around = Surroundings(
            context=self._context,
            session=self._session,
            links=self._links,
            clock=self._clock,
            log=self._log,
            changed=self._watched.changed,
        )
        self._engines = tuple(FollowedEngine(found, around) for found in self._settings.sources)
        try:
            await self._serve_pages()
        except BaseException:
            await self._close()
            raise
        for engine in self._engines:
            engine.feed.open_lanes()
            self._followers += [
                asyncio.create_task(work, name=name) for name, work in engine.tasks()
            ]
        for work in (self._keep_up, self._watch_reach):
            self._followers.append(asyncio.create_task(work(), name=work.__name__))
        self._tellers = [
            asyncio.create_task(link.run(), name=link.parts.target) for link in self._links
        ]
        self._log.info(
            "producer_started",
            version=__version__,
            sources=len(self._engines),
            http_addr=str(self._page_address or ""),
        )

    async def wait_broken(self) -> None:
        """Wait for ever, or until some of the work breaks.

        Raises:
            Exception: Whatever broke it.
        """
        await asyncio.gather(*self._followers, *self._tellers)

    async def stop(self) -> None:
        """Stop listening, let reachable servers take what is pending, then close."""
        await _end(self._followers)
        self._complain()
        try:
            async with asyncio.timeout(self._settings.delivery.drain_ns / NS_PER_S):
                await self.until(lambda: all(map(_is_done, self._links)))
        except TimeoutError:
            self._log.warning("drain_incomplete")
        await self._close()

    async def _close(self) -> None:
        await _end([*self._followers, *self._tellers])
        for link in self._links:
            await link.close()
        if self._pages is not None:
            await self._pages.stop()
        if self._session is not None:
            await self._session.close()
        if self._context is not None:
            self._context.destroy(linger=0)

    def _link(self, target: str) -> ServerLink:
        settings = self._settings
        return ServerLink(
            LinkParts(
                target=target,
                delivery=settings.delivery,
                outbox=settings.outbox,
                client=settings.client,
                credentials=self._credentials,
                clock=self._clock,
                log=self._log,
                changed=self._watched.changed,
            )
        )

    async def _serve_pages(self) -> None:
        if self._settings.page is None:
            return
        numbers = ProducerNumbers(self._engines, self._links, self._clock)
        page = MetricsPage(numbers.families)
        view = ProducerView(
            is_ready=lambda: self.is_synced, describe=self._describe, render_metrics=page.render
        )
        self._pages = producer_listener(self._settings.page, view, self._log)
        self._page_address = await self._pages.start()

    def _describe(self) -> str:
        stats = self.stats
        lines = [
            f"source {found.replica_id} rank {found.rank}: {found.state.value}"
            for found in stats.sources
        ]
        lines += [
            f"server {found.target}: {'up' if found.is_connected else 'down'}"
            for found in stats.servers
        ]
        return "".join(f"{line}\n" for line in lines)

    async def _keep_up(self) -> None:
        while True:
            await asyncio.sleep(_UPKEEP_NS / NS_PER_S)
            self._complain()
            for engine in self._engines:
                engine.feed.forget_away()
                for _ in engine.feed.expire_slices():
                    await asyncio.sleep(0)
                for _ in engine.feed.withdraw_slices():
                    await asyncio.sleep(0)
                for _ in engine.feed.reclaim_slices(_RECLAIMED_PER_SLICE):
                    await asyncio.sleep(0)

    async def _watch_reach(self) -> None:
        reach = Reach(self._log)
        while True:
            await asyncio.sleep(_UPKEEP_NS / NS_PER_S)
            for engine in self._engines:
                await reach.look(engine.subscribers)

    def _complain(self) -> None:
        for engine in self._engines:
            self._complaints.look(engine)


@asynccontextmanager
async def running_producer(
    settings: ProducerSettings, log: EventLog | None = None
) -> AsyncIterator[Producer]:
    """Run a producer for the length of a ``with`` block.

    Args:
        settings: Everything it can be told.
        log: Where it logs.
    """
    producer = Producer(settings, log)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


def _check(settings: ProducerSettings) -> None:
    """Find what is wrong before anything is opened.

    Raises:
        ConfigError: No source or server, two sources of one replica, or a source that is wrong.
    """
    if not settings.sources:
        raise ConfigError(field="sources", value="none", allowed="at least one source")
    if not settings.delivery.targets():
        raise ConfigError(
            field="server", value=settings.delivery.servers, allowed="at least one HOST:PORT"
        )
    for target in settings.delivery.targets():
        check_target("server", target)
    seen: set[tuple[str, str, str]] = set()
    for source in settings.sources:
        check_source(source)
        engine = source.engine
        for name in replicas_of(source):
            if (replica := (engine.tenant_id, engine.model_id, name)) in seen:
                raise ConfigError(
                    field="replica-id", value=name, allowed="each replica in one source"
                )
            seen.add(replica)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _is_done(link: ServerLink) -> bool:
    return link.is_told or link.is_away


def _server_stats(link: ServerLink) -> ServerStats:
    return ServerStats(
        target=link.parts.target,
        is_connected=link.is_up,
        pending_keys=link.pending_keys,
        delivered_keys=link.counters.stored_keys,
        evicted_keys=link.evicted_keys,
        failures=link.counters.failures,
        resyncs=link.counters.resyncs,
    )
