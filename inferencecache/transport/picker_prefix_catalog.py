"""Every metric of what the picker knows of caches, once."""

from typing import Final

from inferencecache.transport.metric_catalog import MetricKind, MetricSpec

SENSED: Final = MetricSpec(
    name="inferencecache_picker_prefix_total",
    kind=MetricKind.COUNTER,
    labels=("source",),
    help="Picks by the best source that was asked where their prompt is warm.",
)
MISSING: Final = MetricSpec(
    name="inferencecache_picker_prefix_missing_total",
    kind=MetricKind.COUNTER,
    labels=("why",),
    help="Picks that had to do without a part of the prefix signal, by what was missing.",
)
STRETCHES: Final = MetricSpec(
    name="inferencecache_picker_prefix_blocks",
    kind=MetricKind.GAUGE,
    help="Stretches of prompts of which the picker remembers where they were sent.",
)
EVICTED: Final = MetricSpec(
    name="inferencecache_picker_prefix_evicted_total",
    kind=MetricKind.COUNTER,
    help="Stretches of prompts forgotten because there was no room.",
)
TRUST: Final = MetricSpec(
    name="inferencecache_picker_prefix_trust",
    kind=MetricKind.GAUGE,
    labels=("endpoint", "source"),
    help="Share of what a source says of a worker that has come true of late, 0 to 1.",
)
ERROR: Final = MetricSpec(
    name="inferencecache_picker_cached_tokens_error",
    kind=MetricKind.GAUGE,
    labels=("endpoint",),
    help="Tokens that a worker reports as cached beyond those that were expected, smoothed; "
    "negative where it has fewer.",
)

PICKER_PREFIX_CATALOG: Final = (SENSED, MISSING, STRETCHES, EVICTED, TRUST, ERROR)
"""All of them, in the order of the reference page."""
