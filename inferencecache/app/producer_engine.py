"""One engine with all that follows it: subscribers, mappers, load signal."""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import zmq

from inferencecache.app.producer_feed import EngineFeed, FeedParts
from inferencecache.app.producer_load import LoadParts, LoadSignal
from inferencecache.app.producer_stats import SourceStats
from inferencecache.clock import Clock
from inferencecache.errors import ConfigError
from inferencecache.events import RankRouter, SequenceTracker
from inferencecache.events.adapters import parse_adapter_names
from inferencecache.settings.subscribe import SourceSettings
from inferencecache.transport.delivery import ServerLink
from inferencecache.transport.engine_scrape import PageScraper
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.subscriber import Subscriber
from inferencecache.transport.subscriber_parts import SubscriberParts
from inferencecache.transport.zmq_endpoint import rank_endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all engines of a producer share.

    Attributes:
        context: Owner of the ZMQ sockets.
        session: Fetches metrics pages.
        links: The servers.
        clock: Time.
        log: Where things that matter to an operator are told.
        changed: Called after anything happened.
    """

    context: "zmq.Context[zmq.Socket[bytes]]"
    session: aiohttp.ClientSession
    links: tuple[ServerLink, ...]
    clock: Clock
    log: EventLog
    changed: Callable[[], None]


class FollowedEngine:
    """One engine.

    Args:
        settings: Where it is and what it is called.
        around: What it shares with others.

    Attributes:
        settings: As given.
        feed: Its mappers.
        subscribers: One per rank.
        load: Its load signal; None without a metrics page.
    """

    def __init__(self, settings: SourceSettings, around: Surroundings) -> None:
        self.settings: Final = settings
        self.feed: Final = EngineFeed(
            FeedParts(
                settings=settings,
                links=around.links,
                clock=around.clock,
                cleared=self._cleared,
                withdrawn=self._withdrawn,
            )
        )
        self.subscribers: Final = tuple(_subscribers(settings, self.feed, around))
        self.load: Final = self._load_signal(around)

    @property
    def is_synced(self) -> bool:
        """Whether every rank is connected and its past taken in."""
        return all(subscriber.is_synced for subscriber in self.subscribers)

    def heard(self) -> int:
        """Return how many messages the engine published, as far as is known."""
        return sum(
            found.counters.messages + found.tracker.counters.applied for found in self.subscribers
        )

    def tasks(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Yield the endless work by name."""
        for subscriber in self.subscribers:
            yield subscriber.parts.name, subscriber.run()
        if self.load is not None:
            yield f"load {self.settings.engine.replica_id}", self.load.run()

    def stats(self) -> Iterator[SourceStats]:
        """Yield what happened, rank by rank."""
        for subscriber in self.subscribers:
            tracker = subscriber.tracker
            yield SourceStats(
                replica_id=self.feed.router.replica_of(subscriber.parts.rank),
                rank=subscriber.parts.rank,
                state=tracker.state,
                expected=tracker.expected,
                applied=tracker.counters.applied,
                is_incomplete=tracker.is_incomplete,
                duplicates=tracker.counters.duplicates,
                restarts=tracker.counters.restarts,
                gaps=tracker.counters.gaps,
                final_gaps=tracker.counters.final_gaps,
            )

    def _cleared(self) -> None:
        if self.load is not None:
            self.load.want()

    def _withdrawn(self, rank: int) -> None:
        for subscriber in self.subscribers:
            if subscriber.parts.rank == rank:
                subscriber.ask_again()

    def _load_signal(self, around: Surroundings) -> LoadSignal | None:
        url = self.settings.engine.metrics_url
        if not url:
            return None
        return LoadSignal(
            LoadParts(
                settings=self.settings,
                scraper=PageScraper(url, around.session),
                report=self.feed.set_stats,
                heard=self.heard,
                clock=around.clock,
                log=around.log,
                changed=around.changed,
            )
        )


def source_name(settings: SourceSettings, rank: int) -> str:
    """Return what *rank* is called in logs and metrics."""
    replica_id = settings.engine.replica_id
    return replica_id if settings.engine.ranks_total == 1 else f"{replica_id}/{rank}"


def replicas_of(settings: SourceSettings) -> set[str]:
    """Return the replicas that the ranks of a source are."""
    engine = settings.engine
    router = RankRouter(engine.replica_id, settings.mapper, separate_ranks=engine.separate_ranks)
    return set(map(router.replica_of, _ranks(settings)))


def check_source(settings: SourceSettings) -> None:
    """Find what is wrong with a source before anything is opened.

    Raises:
        ConfigError: A name is missing, an endpoint has no usable form or is taken twice, or the
            adapter map is wrong.
    """
    engine = settings.engine
    required = {
        "replica-id": engine.replica_id,
        "model-id": engine.model_id,
        "hash-scheme": engine.hash_scheme,
    }
    for flag, value in required.items():
        if not value:
            raise ConfigError(field=flag, value=value, allowed="a text that is not empty")
    parse_adapter_names(settings.mapper.lora_adapter_names)
    _check_endpoints(settings)


def _check_endpoints(settings: SourceSettings) -> None:
    places = [_endpoints(settings, rank) for rank in _ranks(settings)]
    shared = {live for live, _ in places} & {replay for _, replay in places}
    if shared:
        raise ConfigError(
            field="replay-endpoint",
            value=settings.engine.replay_endpoint,
            allowed=f"one where no rank publishes, as one does at {min(shared)}; "
            "rank r has both ports r above those of rank 0",
        )


def _ranks(settings: SourceSettings) -> range:
    engine = settings.engine
    return range(engine.rank_first, engine.rank_first + engine.ranks_total)


def _endpoints(settings: SourceSettings, rank: int) -> tuple[str, str]:
    engine = settings.engine
    live = rank_endpoint(engine.endpoint, rank, flag="engine-endpoint")
    if not engine.replay_endpoint:
        return live, ""
    return live, rank_endpoint(engine.replay_endpoint, rank, flag="replay-endpoint")


def _subscribers(
    settings: SourceSettings, feed: EngineFeed, around: Surroundings
) -> Iterator[Subscriber]:
    for rank in _ranks(settings):
        live, replay = _endpoints(settings, rank)
        parts = SubscriberParts(
            name=source_name(settings, rank),
            rank=rank,
            endpoint=live,
            replay_endpoint=replay,
            topic=settings.engine.topic,
            messages_max=settings.engine.receive_messages_max,
            vanished_after_ns=settings.engine.vanished_after_ns,
            failure_log_interval_ns=settings.engine.failure_log_interval_ns,
            start_over_interval_ns=settings.engine.start_over_interval_ns,
            decode=settings.decode,
            clock=around.clock,
            log=around.log,
            changed=around.changed,
        )
        tracker = SequenceTracker(settings.sequence, has_replay=bool(replay))
        yield Subscriber(parts, tracker, feed, around.context)
