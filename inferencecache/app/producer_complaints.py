"""Tell an operator, once each, of what engine events show to be set up wrongly.

Every one of these is counted in the metrics; a count nobody looks at does not explain why lookups
never match.
"""

from collections.abc import Iterator
from typing import Final

from inferencecache.app.producer_engine import FollowedEngine
from inferencecache.events import EventMapper
from inferencecache.transport.structured_log import EventLog

Complaint = tuple[str, tuple[tuple[str, str | int], ...]]
"""Name of a log event, and its fields."""


class Complaints:
    """Remembers what was said.

    Args:
        log: Where it is said.
    """

    def __init__(self, log: EventLog) -> None:
        self._log: Final = log
        self._said: set[Complaint] = set()

    def look(self, engine: FollowedEngine) -> None:
        """Say what is new about *engine*; bounded, since so is what counters tell apart."""
        for complaint in _complaints(engine):
            if complaint not in self._said:
                self._said.add(complaint)
                event, fields = complaint
                self._log.warning(event, **dict(fields))


def _complaints(engine: FollowedEngine) -> Iterator[Complaint]:
    for subscriber in engine.subscribers:
        for cause in subscriber.counters.malformed:
            yield _complaint("messages_unreadable", source=subscriber.parts.name, cause=cause)
    for replica_id, mapper in engine.feed.router.replicas():
        yield from _about_stores(engine, replica_id, mapper)
        yield from _about_adapters(replica_id, mapper)
        yield from _about_events(replica_id, mapper)


def _about_stores(
    engine: FollowedEngine, replica_id: str, mapper: EventMapper
) -> Iterator[Complaint]:
    counters, settings = mapper.counters, engine.settings.mapper
    for size in counters.refused_block_sizes:
        yield _complaint(
            "block_size_refused",
            replica=replica_id,
            engine_block_size=size,
            block_size=settings.block_size_tokens,
        )
    for size, usual_size in counters.smaller_block_sizes:
        yield _complaint(
            "smaller_blocks_dropped",
            replica=replica_id,
            engine_block_size=size,
            usual_block_size=usual_size,
        )
    if counters.overflowed_blocks:
        yield _complaint("blocks_withdrawn", replica=replica_id, max_blocks=settings.blocks_max)


def _about_adapters(replica_id: str, mapper: EventMapper) -> Iterator[Complaint]:
    for number in mapper.counters.unmapped_adapters:
        yield _complaint("adapter_without_name", replica=replica_id, lora_id=number)
    for name in mapper.counters.unnumbered_adapters:
        yield _complaint("adapter_without_number", replica=replica_id, lora_name=name)


def _about_events(replica_id: str, mapper: EventMapper) -> Iterator[Complaint]:
    counters = mapper.counters
    for cause in counters.faults:
        yield _complaint("events_undecodable", replica=replica_id, cause=cause)
    if counters.rank_mismatches:
        yield _complaint("rank_differs", replica=replica_id)
    if counters.clock_skews:
        yield _complaint("clock_differs", replica=replica_id)


def _complaint(event: str, **fields: str | int) -> Complaint:
    return event, tuple(fields.items())
