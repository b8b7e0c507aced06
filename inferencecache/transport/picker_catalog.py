"""Every metric of the picker, once."""

from typing import Final

from inferencecache.transport.metric_catalog import MetricKind, MetricSpec

BODIES: Final = MetricSpec(
    name="inferencecache_picker_bodies_buffered",
    kind=MetricKind.GAUGE,
    help="Bodies from the first byte of their upload until they are let go.",
)
BUFFERED_BYTES: Final = MetricSpec(
    name="inferencecache_picker_buffered_bytes",
    kind=MetricKind.GAUGE,
    help="Bytes of those bodies.",
)
DECISIONS: Final = MetricSpec(
    name="inferencecache_picker_decisions",
    kind=MetricKind.GAUGE,
    help="Decisions that can still be reported about.",
)
IN_FLIGHT: Final = MetricSpec(
    name="inferencecache_picker_inflight",
    kind=MetricKind.GAUGE,
    labels=("endpoint",),
    help="Requests given to a destination and not ended.",
)
PUSHES: Final = MetricSpec(
    name="inferencecache_picker_push_total",
    kind=MetricKind.COUNTER,
    labels=("result",),
    help="Ended uploads by result.",
)
PICKS: Final = MetricSpec(
    name="inferencecache_picker_pick_total",
    kind=MetricKind.COUNTER,
    labels=("outcome", "tier", "qos"),
    help="Pick answers by outcome; the tier is empty without a destination.",
)
PICK_LATENCY: Final = MetricSpec(
    name="inferencecache_picker_pick_seconds",
    kind=MetricKind.HISTOGRAM,
    buckets_seconds=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0),
    help="Time from a Pick to its answer.",
)
ABORTS: Final = MetricSpec(
    name="inferencecache_picker_aborts_total",
    kind=MetricKind.COUNTER,
    labels=("reason",),
    help="Abort calls by reason.",
)
UNKNOWN_REPORTS: Final = MetricSpec(
    name="inferencecache_picker_reports_unknown_total",
    kind=MetricKind.COUNTER,
    labels=("method",),
    help="Reports about decisions that are unknown, over, or were reported about before.",
)
BAD_REPORTS: Final = MetricSpec(
    name="inferencecache_picker_reports_bad_total",
    kind=MetricKind.COUNTER,
    labels=("flaw",),
    help="Final reports of which a part could not be used, by which.",
)
EXPIRED: Final = MetricSpec(
    name="inferencecache_picker_expired_total",
    kind=MetricKind.COUNTER,
    labels=("stage",),
    help="Bodies and decisions whose time was over, by how far they had come.",
)

SUPPRESSED: Final = MetricSpec(
    name="inferencecache_picker_suppressed",
    kind=MetricKind.GAUGE,
    labels=("candidate",),
    help="Unix time, in seconds, from which a suppressed destination may be tried again.",
)
SUPPRESSIONS: Final = MetricSpec(
    name="inferencecache_picker_suppressions_total",
    kind=MetricKind.COUNTER,
    labels=("reason",),
    help="Suppressions that began, by what went wrong.",
)
LIMITED: Final = MetricSpec(
    name="inferencecache_picker_limited_inflight",
    kind=MetricKind.GAUGE,
    help="Tenants and limits with requests in flight.",
)
SKEWED_PICKS: Final = MetricSpec(
    name="inferencecache_picker_pool_version_skew_total",
    kind=MetricKind.COUNTER,
    help="Picks whose caller had seen another version of its pool.",
)
TTFT_ERROR: Final = MetricSpec(
    name="inferencecache_picker_ttft_error_seconds",
    kind=MetricKind.HISTOGRAM,
    buckets_seconds=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    help="By how much a time to the first token was foreseen wrongly, of good answers.",
)
GAPS: Final = MetricSpec(
    name="inferencecache_picker_itl_seconds",
    kind=MetricKind.HISTOGRAM,
    labels=("endpoint",),
    buckets_seconds=(
        0.005,
        0.01,
        0.015,
        0.02,
        0.03,
        0.04,
        0.05,
        0.075,
        0.1,
        0.15,
        0.2,
        0.3,
        0.5,
        1.0,
    ),
    help="Gaps between the tokens of answers as callers count them; buckets alone, without a sum.",
)
QUEUED_TOKENS: Final = MetricSpec(
    name="inferencecache_picker_queued_tokens",
    kind=MetricKind.GAUGE,
    labels=("endpoint",),
    help="Tokens that a destination must compute for requests whose first token is to come.",
)
AGED: Final = MetricSpec(
    name="inferencecache_picker_load_aged_total",
    kind=MetricKind.COUNTER,
    help="Requests that no longer count as load because nobody has said anything about them.",
)
SCRAPES: Final = MetricSpec(
    name="inferencecache_picker_scrapes_total",
    kind=MetricKind.COUNTER,
    labels=("result",),
    help="Pages of engines that were read for their load: ok, empty of it, or failed.",
)
ENGINES_HEARD: Final = MetricSpec(
    name="inferencecache_picker_engines_heard",
    kind=MetricKind.GAUGE,
    help="Engines whose page has said how busy they are a moment ago.",
)
DEFERRED: Final = MetricSpec(
    name="inferencecache_picker_deferred",
    kind=MetricKind.GAUGE,
    help="DEFERRABLE requests that wait for a calmer moment.",
)
DEFERRALS: Final = MetricSpec(
    name="inferencecache_picker_deferrals_total",
    kind=MetricKind.COUNTER,
    labels=("result",),
    help="DEFERRABLE requests that did not go on at once: passed later, or shed.",
)

PICKER_CATALOG: Final = (
    BODIES,
    BUFFERED_BYTES,
    DECISIONS,
    IN_FLIGHT,
    PUSHES,
    PICKS,
    PICK_LATENCY,
    ABORTS,
    UNKNOWN_REPORTS,
    BAD_REPORTS,
    EXPIRED,
    SUPPRESSED,
    SUPPRESSIONS,
    LIMITED,
    SKEWED_PICKS,
    TTFT_ERROR,
    GAPS,
    QUEUED_TOKENS,
    AGED,
    SCRAPES,
    ENGINES_HEARD,
    DEFERRED,
    DEFERRALS,
)
"""All of them, in the order of the reference page."""
