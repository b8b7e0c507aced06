"""One producer: engines in, servers out, from start to stop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from inferencecache.app.producer_stats import ProducerStats
from inferencecache.settings.subscribe import ProducerSettings
from inferencecache.transport.structured_log import EventLog, StructuredLog


class Producer:
    """Follows engines and tells servers what they hold.

    Args:
        settings: Everything it can be told.
        log: Where it logs.
    """

    def __init__(self, settings: ProducerSettings, log: EventLog | None = None) -> None:
        self._settings = settings
        self._log = log or StructuredLog()

    @property
    def is_synced(self) -> bool:
        """Whether every engine is connected and its past, as far as it can be had, taken in."""
        return False

    @property
    def stats(self) -> ProducerStats:
        """Return a copy of what has happened so far."""
        return ProducerStats(sources=(), servers=())

    @property
    def page_url(self) -> str:
        """The URL of the producer's own pages; empty if it serves none."""
        return ""

    async def wait_synced(self) -> None:
        """Wait until :attr:`is_synced`; for ever if an engine never comes."""

    async def drained(self) -> None:
        """Wait until every server has acknowledged everything taken in so far."""

    async def start(self) -> None:
        """Connect to engines and servers; returns at once, whether or not they are there."""

    async def stop(self) -> None:
        """Stop listening, hand over what is pending if the servers take it, and close."""


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
