"""Every metric of the server, once: name, type, labels, help; the reference derives from it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class MetricKind(StrEnum):
    """The types of the Prometheus text format that the server uses."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricSpec:
    """One metric; each is there once, and is a key on hot paths, hence equal to none but itself.

    Attributes:
        name: Full name as scraped; counters end in ``_total``.
        kind: Its type.
        labels: Names of its labels.
        help: One sentence for people.
        buckets_seconds: Upper bounds of a histogram's buckets, rising, without +Inf.
    """

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    buckets_seconds: tuple[float, ...] = ()


SERVER_UP: Final = MetricSpec(
    name="inferencecache_server_up",
    kind=MetricKind.GAUGE,
    help="1 from just before the listeners accept until the server ends.",
)
GRPC_TLS_ENABLED: Final = MetricSpec(
    name="inferencecache_server_grpc_tls_enabled",
    kind=MetricKind.GAUGE,
    help="1 if the gRPC listener serves TLS, 0 if it serves plaintext.",
)
LOOKUP_CALLS: Final = MetricSpec(
    name="inferencecache_lookup_route_calls_total",
    kind=MetricKind.COUNTER,
    labels=("model", "reason_code", "hint_used"),
    help="LookupRoute answers; hint_used is true if the answer names a replica.",
)
LOOKUP_LATENCY: Final = MetricSpec(
    name="inferencecache_lookup_route_latency_seconds",
    kind=MetricKind.HISTOGRAM,
    labels=("model",),
    buckets_seconds=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    help="Time from a parsed LookupRoute request to its answer.",
)
LOOKUP_FAIL_OPEN: Final = MetricSpec(
    name="inferencecache_lookup_route_fail_open_total",
    kind=MetricKind.COUNTER,
    labels=("cause",),
    help="LookupRoute requests whose input could not be used, answered with NO_HINT.",
)
LOOKUP_CHAINS_CUT: Final = MetricSpec(
    name="inferencecache_lookup_route_chains_cut_total",
    kind=MetricKind.COUNTER,
    help="LookupRoute requests whose chain was longer than lookups take into account.",
)
UNPARSABLE_MESSAGES: Final = MetricSpec(
    name="inferencecache_grpc_unparsable_messages_total",
    kind=MetricKind.COUNTER,
    labels=("method",),
    help="gRPC messages that were no valid protobuf of their type.",
)
HANDLER_ERRORS: Final = MetricSpec(
    name="inferencecache_grpc_handler_errors_total",
    kind=MetricKind.COUNTER,
    labels=("method",),
    help="gRPC calls that ended in an unexpected exception; each is a bug and is logged.",
)
INGEST_UPDATES: Final = MetricSpec(
    name="inferencecache_ingest_updates_total",
    kind=MetricKind.COUNTER,
    help="Updates received over ReportCacheState and applied.",
)
INGEST_ENTRIES: Final = MetricSpec(
    name="inferencecache_ingest_entries_total",
    kind=MetricKind.COUNTER,
    help="Prefix entries those updates carried.",
)
INGEST_EVENTS: Final = MetricSpec(
    name="inferencecache_ingest_events_total",
    kind=MetricKind.COUNTER,
    labels=("type",),
    help="Events received over PublishEvent, by their type on the wire.",
)
INGEST_LAG: Final = MetricSpec(
    name="inferencecache_ingest_lag_seconds",
    kind=MetricKind.HISTOGRAM,
    buckets_seconds=(0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0),
    help="Age of updates that bear a timestamp when they were applied; the future counts as 0, and "
    "more than --max-ingest-lag as that.",
)
INGEST_DROPPED: Final = MetricSpec(
    name="inferencecache_ingest_dropped_total",
    kind=MetricKind.COUNTER,
    labels=("reason",),
    help="Reported things that were dropped because they could have become a wrong hint.",
)
INGEST_FENCED: Final = MetricSpec(
    name="inferencecache_ingest_fenced_updates_total",
    kind=MetricKind.COUNTER,
    help="Updates older than their replica's last ALL_CLEARED, dropped.",
)
INGEST_CLAMPED: Final = MetricSpec(
    name="inferencecache_ingest_timestamps_clamped_total",
    kind=MetricKind.COUNTER,
    help="Timestamps from the future that counted as now.",
)
INDEX_ENTRIES: Final = MetricSpec(
    name="inferencecache_index_entries",
    kind=MetricKind.GAUGE,
    labels=("model",),
    help="Distinct prefixes per model; a drained model stays with 0.",
)
INDEX_PREFIXES: Final = MetricSpec(
    name="inferencecache_index_prefixes",
    kind=MetricKind.GAUGE,
    help="Distinct prefixes over all models.",
)
INDEX_HELD_ENTRIES: Final = MetricSpec(
    name="inferencecache_index_held_entries",
    kind=MetricKind.GAUGE,
    help="Entries, one per replica and prefix, that count against the cap.",
)
INDEX_EVICTIONS: Final = MetricSpec(
    name="inferencecache_index_evictions_total",
    kind=MetricKind.COUNTER,
    labels=("algorithm", "reason"),
    help="Entries, one per replica and prefix, removed by the cap or by their age.",
)
TENANT_EVICTIONS: Final = MetricSpec(
    name="inferencecache_tenant_evictions_total",
    kind=MetricKind.COUNTER,
    labels=("tenant_id", "reason"),
    help="Distinct prefixes removed because their tenant was over its quota.",
)
SWEEP_DURATION: Final = MetricSpec(
    name="inferencecache_index_sweep_duration_seconds",
    kind=MetricKind.HISTOGRAM,
    buckets_seconds=(0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0),
    help="Time a sweep for expired entries took, with the pauses in which others worked.",
)
LOOP_LAG: Final = MetricSpec(
    name="inferencecache_event_loop_lag_seconds",
    kind=MetricKind.HISTOGRAM,
    buckets_seconds=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0),
    help="How late the event loop woke a timer; one sample per measurement.",
)

CATALOG: Final = (
    SERVER_UP,
    GRPC_TLS_ENABLED,
    LOOKUP_CALLS,
    LOOKUP_LATENCY,
    LOOKUP_FAIL_OPEN,
    LOOKUP_CHAINS_CUT,
    UNPARSABLE_MESSAGES,
    HANDLER_ERRORS,
    INGEST_UPDATES,
    INGEST_ENTRIES,
    INGEST_EVENTS,
    INGEST_LAG,
    INGEST_DROPPED,
    INGEST_FENCED,
    INGEST_CLAMPED,
    INDEX_ENTRIES,
    INDEX_PREFIXES,
    INDEX_HELD_ENTRIES,
    INDEX_EVICTIONS,
    TENANT_EVICTIONS,
    SWEEP_DURATION,
    LOOP_LAG,
)
"""All of them, in the order of the reference page."""
