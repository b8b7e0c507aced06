"""A producer's numbers, read where they are kept, at the moment of a scrape."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from inferencecache.app.producer_engine import FollowedEngine
from inferencecache.clock import NS_PER_S, Clock
from inferencecache.events import EventMapper, SyncState
from inferencecache.events.mapper_counters import MapperCounters
from inferencecache.transport import producer_metrics as catalog
from inferencecache.transport.delivery import ServerLink
from inferencecache.transport.metric_catalog import MetricSpec
from inferencecache.transport.metric_cells import Family
from inferencecache.transport.subscriber import Subscriber

_Rows = dict[tuple[str, ...], float]


def _unmapped(counters: MapperCounters) -> Iterable[tuple[str, int]]:
    """Return dropped stores by what their adapter is called, its number first."""
    return (Counter(counters.unmapped_adapters) + Counter(counters.unnumbered_adapters)).items()


_SOURCE: Final[dict[MetricSpec, Callable[[Subscriber], float]]] = {
    catalog.SOURCE_INCOMPLETE: lambda found: found.tracker.is_incomplete,
    catalog.EXPECTED_NUMBER: lambda found: found.tracker.expected or 0,
    catalog.WAITING_BATCHES: lambda found: found.tracker.waiting_batches,
    catalog.LONGEST_AWAY: lambda found: found.counters.longest_away_ns / NS_PER_S,
    catalog.LONGEST_AWAY_CPU: lambda found: found.counters.longest_away_cpu_ns / NS_PER_S,
    catalog.MESSAGES: lambda found: found.counters.messages,
    catalog.PAYLOAD_BYTES: lambda found: found.counters.bytes,
    catalog.CONNECTS: lambda found: found.counters.connects,
    catalog.DISCONNECTS: lambda found: found.counters.disconnects,
    catalog.BATCH_FAILURES: lambda found: found.counters.failures,
    catalog.BATCHES: lambda found: found.tracker.counters.applied,
    catalog.REPLAYED: lambda found: found.tracker.counters.replayed,
    catalog.DUPLICATES: lambda found: found.tracker.counters.duplicates,
    catalog.RESTARTS: lambda found: found.tracker.counters.restarts,
    catalog.GAPS: lambda found: found.tracker.counters.gaps,
    catalog.MISSING: lambda found: found.tracker.counters.missing_numbers,
    catalog.LOST: lambda found: found.tracker.counters.lost_numbers,
    catalog.FINAL_GAPS: lambda found: found.tracker.counters.final_gaps,
    catalog.HEADS_LOST: lambda found: found.tracker.counters.heads_lost,
    catalog.REPLAYS: lambda found: found.tracker.counters.replay_requests,
    catalog.REPLAY_TIMEOUTS: lambda found: found.tracker.counters.replay_timeouts,
    catalog.REORDER_REFUSED: lambda found: found.tracker.counters.reorder_refused,
    catalog.STRAY_ENDS: lambda found: found.tracker.counters.stray_ends,
}
_REPLICA: Final[dict[MetricSpec, Callable[[EventMapper], float]]] = {
    catalog.BLOCKS: lambda found: found.blocks_total,
    catalog.STORED_BLOCKS: lambda found: found.counters.stored_blocks,
    catalog.REMOVED_BLOCKS: lambda found: found.counters.removed_blocks,
    catalog.CLEARS: lambda found: found.counters.cleared,
    catalog.OPAQUE: lambda found: found.counters.opaque_blocks,
    catalog.ORPHANS: lambda found: found.orphan_blocks,
    catalog.ORPHANED: lambda found: found.counters.orphaned_blocks,
    catalog.ORPHANS_RESOLVED: lambda found: found.counters.orphans_resolved,
    catalog.ORPHANS_DROPPED: lambda found: found.counters.orphans_dropped,
    catalog.UNKNOWN_MEDIUMS: lambda found: found.counters.unknown_mediums,
    catalog.UNKNOWN_REMOVALS: lambda found: found.counters.unknown_removals,
    catalog.SATURATED: lambda found: found.counters.copies_saturated,
    catalog.REBOUND: lambda found: found.counters.rebound_blocks,
    catalog.OVERFLOWED: lambda found: found.counters.overflowed_blocks,
    catalog.RANK_MISMATCHES: lambda found: found.counters.rank_mismatches,
    catalog.CLOCK_SKEWS: lambda found: found.counters.clock_skews,
}
_REPLICA_NAMED: Final[dict[MetricSpec, Callable[[EventMapper], Iterable[tuple[object, int]]]]] = {
    catalog.KEYS: lambda found: [(tier.name, keys) for tier, keys in found.keys_by_tier().items()],
    catalog.FAULTS: lambda found: found.counters.faults.items(),
    catalog.DROPS: lambda found: found.counters.drops.items(),
    catalog.UNMAPPED: lambda found: _unmapped(found.counters),
    catalog.REFUSED_SIZES: lambda found: found.counters.refused_block_sizes.items(),
}
_SERVER: Final[dict[MetricSpec, Callable[[ServerLink], float]]] = {
    catalog.SERVER_UP: lambda found: found.is_up,
    catalog.PENDING_KEYS: lambda found: found.pending_keys,
    catalog.ROUNDS: lambda found: found.counters.rounds,
    catalog.DELIVERED: lambda found: found.counters.stored_keys,
    catalog.EVICTED: lambda found: found.evicted_keys,
    catalog.REFUSED_EVICTIONS: lambda found: found.refused_evictions,
    catalog.LOSSES: lambda found: found.counters.losses,
    catalog.RESYNCS: lambda found: found.counters.resyncs,
    catalog.RENEWALS: lambda found: found.counters.renewals,
    catalog.COALESCED: lambda found: found.coalesced_keys,
    catalog.OUTBOX_OVERFLOWS: lambda found: sum(lane.outbox.overflows for lane in found.lanes()),
}


class ProducerNumbers:
    """Collects the numbers of everything in a producer.

    Args:
        engines: What it follows.
        links: What it tells.
        clock: Time, for ages.
    """

    def __init__(
        self,
        engines: tuple[FollowedEngine, ...],
        links: tuple[ServerLink, ...],
        clock: Clock,
    ) -> None:
        self._engines = engines
        self._links = links
        self._clock = clock

    def families(self) -> list[Family]:
        """Return a copy of all numbers; cheap, for the event loop."""
        sources = [found for engine in self._engines for found in engine.subscribers]
        replicas = [pair for engine in self._engines for pair in engine.feed.router.replicas()]
        return [
            *self._source_families(sources),
            *self._replica_families(replicas),
            *self._engine_families(),
            *self._server_families(),
        ]

    def _source_families(self, sources: list[Subscriber]) -> Iterator[Family]:
        states: _Rows = {}
        ages: _Rows = {}
        malformed: _Rows = {}
        now_ns = self._clock.monotonic_ns()
        for found in sources:
            name = found.parts.name
            for state in SyncState:
                states[name, state.value] = found.tracker.state == state
            if found.last_batch_ns is not None:
                ages[name,] = (now_ns - found.last_batch_ns) / NS_PER_S
            malformed |= {(name, cause): n for cause, n in found.counters.malformed.items()}
        yield Family(catalog.SOURCE_STATE, states)
        yield Family(catalog.LAST_BATCH_AGE, ages)
        yield Family(catalog.MALFORMED, malformed)
        for spec, read in _SOURCE.items():
            yield Family(spec, {(found.parts.name,): float(read(found)) for found in sources})

    def _replica_families(self, replicas: Iterable[tuple[str, EventMapper]]) -> Iterator[Family]:
        known = list(replicas)
        for spec, read in _REPLICA.items():
            yield Family(spec, {(name,): float(read(mapper)) for name, mapper in known})
        for spec, read_named in _REPLICA_NAMED.items():
            yield Family(
                spec,
                {
                    (name, str(label)): number
                    for name, mapper in known
                    for label, number in read_named(mapper)
                },
            )

    def _engine_families(self) -> Iterator[Family]:
        yield Family(
            catalog.EVENTS,
            {
                (engine.settings.engine.replica_id, kind.__name__): number
                for engine in self._engines
                for kind, number in engine.feed.events.items()
            },
        )
        loads = [
            (engine.settings.engine.replica_id, engine.load)
            for engine in self._engines
            if engine.load is not None
        ]
        yield Family(catalog.SCRAPES, {(name,): load.scrapes for name, load in loads})
        yield Family(catalog.SCRAPE_FAILURES, {(name,): load.failures for name, load in loads})
        yield Family(catalog.LOAD_STALE, {(name,): load.is_stale for name, load in loads})
        yield Family(catalog.SILENT, {(name,): load.is_silent for name, load in loads})

    def _server_families(self) -> Iterator[Family]:
        now_ns = self._clock.monotonic_ns()
        ages: _Rows = {}
        for found in self._links:
            firsts = [lane.first_change_ns for lane in found.lanes()]
            oldest = min((first for first in firsts if first is not None), default=now_ns)
            ages[found.parts.target,] = (now_ns - oldest) / NS_PER_S
        yield Family(catalog.PENDING_AGE, ages)
        failed: _Rows = {
            (found.parts.target, method): float(calls)
            for found in self._links
            for method, calls in found.counters.failed_calls.items()
        }
        yield Family(catalog.DELIVERY_FAILURES, failed)
        for spec, read in _SERVER.items():
            yield Family(spec, {(found.parts.target,): float(read(found)) for found in self._links})
