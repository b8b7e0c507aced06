"""Every metric of the picker's plugins, once."""

from typing import Final

from inferencecache.transport.metric_catalog import MetricKind, MetricSpec

PRODUCER_LATENCY: Final = MetricSpec(
    name="inferencecache_picker_producer_seconds",
    kind=MetricKind.HISTOGRAM,
    labels=("producer",),
    buckets_seconds=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 1.0),
    help="Time that data producers took that came in time.",
)
PRODUCER_FAILURES: Final = MetricSpec(
    name="inferencecache_picker_producer_failures_total",
    kind=MetricKind.COUNTER,
    labels=("producer", "kind"),
    help="Failures of data producers.",
)
PLUGIN_FAILURES: Final = MetricSpec(
    name="inferencecache_picker_plugin_failures_total",
    kind=MetricKind.COUNTER,
    labels=("plugin", "hook", "kind"),
    help="Failures of plugins in all other hooks.",
)

PICKER_PLUGIN_CATALOG: Final = (PRODUCER_LATENCY, PRODUCER_FAILURES, PLUGIN_FAILURES)
"""All of them, in the order of the reference page."""
