"""Every metric of a producer, once; the reference derives from it.

Labels: ``source`` is one data-parallel rank of one engine, ``replica`` an engine or rank as the
index knows it, ``server`` the address of a server.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from inferencecache.transport.metric_catalog import MetricKind, MetricSpec
from inferencecache.transport.metric_cells import Family, to_prometheus

PREFIX: Final = "inferencecache_producer_"


def _spec(kind: MetricKind, name: str, label: str, text: str, more: str = "") -> MetricSpec:
    labels = (label, more) if more else (label,)
    return MetricSpec(name=PREFIX + name, kind=kind, labels=labels, help=text)


def _source(name: str, text: str, more: str = "") -> MetricSpec:
    kind = MetricKind.COUNTER if name.endswith("_total") else MetricKind.GAUGE
    return _spec(kind, name, "source", text, more)


def _replica(name: str, text: str, more: str = "") -> MetricSpec:
    kind = MetricKind.COUNTER if name.endswith("_total") else MetricKind.GAUGE
    return _spec(kind, name, "replica", text, more)


def _server(name: str, text: str, more: str = "") -> MetricSpec:
    kind = MetricKind.COUNTER if name.endswith("_total") else MetricKind.GAUGE
    return _spec(kind, name, "server", text, more)


SOURCE_STATE: Final = _source(
    "source_state", "1 for the source's present state, 0 for the others.", "state"
)
SOURCE_INCOMPLETE: Final = _source(
    "source_incomplete", "1 if batches before the first one known were never seen."
)
EXPECTED_NUMBER: Final = _source("expected_number", "Number of the next batch.")
LAST_BATCH_AGE: Final = _source("last_batch_age_seconds", "Time since the last batch was taken in.")
WAITING_BATCHES: Final = _source(
    "waiting_batches", "Batches that wait for an earlier one that is missing."
)
LONGEST_AWAY: Final = _source(
    "longest_away_seconds",
    "Longest time between two looks at a socket that had more to read.",
)
LONGEST_AWAY_CPU: Final = _source(
    "longest_away_cpu_seconds",
    "Most processor time of the producer's loop between two such looks; the rest of the longest "
    "time went to other processes.",
)
MESSAGES: Final = _source("messages_total", "Live messages received.")
PAYLOAD_BYTES: Final = _source("payload_bytes_total", "Payload bytes of the batches taken in.")
CONNECTS: Final = _source("connects_total", "Connections made to the engine.")
DISCONNECTS: Final = _source("disconnects_total", "Connections to the engine lost.")
MALFORMED: Final = _source(
    "malformed_messages_total", "Messages that could not be read at all.", "cause"
)
BATCH_FAILURES: Final = _source(
    "batch_failures_total", "Batches that ended in an unexpected exception; each is a bug."
)
BATCHES: Final = _source("batches_total", "Batches taken in, in order and once each.")
REPLAYED: Final = _source("replayed_batches_total", "Of these, from a replay.")
DUPLICATES: Final = _source("duplicates_total", "Live messages that had been seen before.")
RESTARTS: Final = _source("restarts_total", "Restarts of the engine.")
GAPS: Final = _source("gaps_total", "Times that numbers were found missing.")
MISSING: Final = _source(
    "missing_batches_total", "Batches found missing, whether or not a replay brought them later."
)
LOST: Final = _source("lost_batches_total", "Batches given up for good.")
FINAL_GAPS: Final = _source("final_gaps_total", "Times that missing batches were given up.")
HEADS_LOST: Final = _source(
    "heads_lost_total", "Replays that did not reach back to the engine's first batch."
)
REPLAYS: Final = _source("replay_requests_total", "Replays asked for.")
REPLAY_TIMEOUTS: Final = _source("replay_timeouts_total", "Replays that ended without a mark.")
REORDER_REFUSED: Final = _source(
    "reorder_refused_total", "Messages that found no room to wait for an earlier one."
)
STRAY_ENDS: Final = _source("stray_ends_total", "End marks outside a replay.")

EVENTS: Final = _replica("events_total", "Events taken in, by type.", "type")
BLOCKS: Final = _replica("blocks", "Engine blocks remembered.")
KEYS: Final = _replica("keys", "Keys held, by their best tier.", "tier")
STORED_BLOCKS: Final = _replica("stored_blocks_total", "Blocks of the stores that were indexed.")
REMOVED_BLOCKS: Final = _replica("removed_blocks_total", "Copies taken away by removals.")
CLEARS: Final = _replica("clears_total", "Clears, by the engine or after a restart.")
FAULTS: Final = _replica(
    "event_faults_total", "Events that could not be decoded, by offending field.", "cause"
)
DROPS: Final = _replica("stores_dropped_total", "Stores that put nothing into the index.", "cause")
UNMAPPED: Final = _replica(
    "unmapped_adapters_total",
    "Stores of adapters the map does not have, by number or, without one, name.",
    "adapter",
)
REFUSED_SIZES: Final = _replica(
    "refused_block_sizes_total", "Stores whose block size does not fit the index's.", "size"
)
OPAQUE: Final = _replica(
    "opaque_blocks_total", "Blocks whose content tokens do not describe: never indexed."
)
ORPHANS: Final = _replica("orphan_blocks", "Blocks that wait for their parent.")
ORPHANED: Final = _replica("orphaned_blocks_total", "Blocks that came before their parent.")
ORPHANS_RESOLVED: Final = _replica("orphans_resolved_total", "Of these, placed later.")
ORPHANS_DROPPED: Final = _replica("orphans_dropped_total", "Of these, given up.")
UNKNOWN_MEDIUMS: Final = _replica(
    "unknown_mediums_total", "Events with a medium that no release is known to send."
)
UNKNOWN_REMOVALS: Final = _replica(
    "unknown_removals_total", "Removals of blocks or copies that are not held."
)
SATURATED: Final = _replica(
    "copies_saturated_total", "Stores of blocks whose copies are no longer counted."
)
REBOUND: Final = _replica("rebound_blocks_total", "Engine hashes that came to mean other content.")
OVERFLOWED: Final = _replica(
    "overflowed_blocks_total", "Blocks withdrawn because too many were held."
)
RANK_MISMATCHES: Final = _replica(
    "rank_mismatches_total", "Batches that name another rank than their socket's."
)
CLOCK_SKEWS: Final = _replica(
    "clock_skews_total", "Live batches whose time is far from this machine's."
)
SCRAPES: Final = _replica("load_scrapes_total", "Looks at the engine's metrics page.")
SCRAPE_FAILURES: Final = _replica("load_failures_total", "Of these, without a load signal.")
LOAD_STALE: Final = _replica("load_stale", "1 if the last three looks had no load signal.")
SILENT: Final = _replica("engine_silent", "1 if the engine serves requests and publishes nothing.")

SERVER_UP: Final = _server("server_up", "1 if the server is reachable.")
PENDING_KEYS: Final = _server("pending_keys", "Keys with a change the server was not sent.")
PENDING_AGE: Final = _server(
    "pending_age_seconds", "Age of the oldest change the server was not sent; 0 for none."
)
ROUNDS: Final = _server("deliveries_total", "Deliveries acknowledged.")
DELIVERY_FAILURES: Final = _server(
    "delivery_failures_total",
    "Calls that failed, by their method; each is repeated, unless it was refused for good.",
    "method",
)
DELIVERED: Final = _server("delivered_keys_total", "Keys acknowledged as stored.")
EVICTED: Final = _server("evicted_keys_total", "Keys acknowledged as evicted.")
REFUSED_EVICTIONS: Final = _server(
    "refused_evictions_total", "Evictions given up because the server refused what they say."
)
LOSSES: Final = _server("server_losses_total", "Connections to the server lost.")
RESYNCS: Final = _server(
    "resyncs_total", "Times a replica was cleared and everything it holds was sent."
)
RENEWALS: Final = _server("renewals_total", "Times the slow repetition of everything began.")
COALESCED: Final = _server("coalesced_keys_total", "Changes that a later one made unnecessary.")
OUTBOX_OVERFLOWS: Final = _server(
    "outbox_overflows_total", "Times that changes were dropped because too many were pending."
)

PRODUCER_CATALOG: Final = tuple(
    value for value in list(globals().values()) if isinstance(value, MetricSpec)
)
"""All of them, in the order of the reference page."""


class MetricsPage:
    """Makes the page of a producer.

    Args:
        families: Returns a copy of the numbers; called on the event loop.
    """

    def __init__(self, families: Callable[[], list[Family]]) -> None:
        self._families = families
        self._copy = _Copy()
        self._rendering = asyncio.Lock()
        self._registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._registry.register(self._copy)

    async def render(self) -> bytes:
        """Return the page; the text is made in a thread, one page at a time."""
        async with self._rendering:
            self._copy.families = self._families()
            return await asyncio.to_thread(generate_latest, self._registry)


class _Copy(Collector):
    """Hands the copied numbers to the registry."""

    def __init__(self) -> None:
        self.families: list[Family] = []

    def collect(self) -> Iterator[Metric]:
        """Yield the families that have anything to show."""
        for family in self.families:
            if family.numbers:
                yield to_prometheus(family)
