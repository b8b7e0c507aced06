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

CONFIG_LOADS: Final = MetricSpec(
    name="inferencecache_picker_config_loads_total",
    kind=MetricKind.COUNTER,
    labels=("result",),
    help="Changes of the plugins' configuration that were taken, or refused for a mistake.",
)
CONFIG_REFUSED: Final = MetricSpec(
    name="inferencecache_picker_config_refused",
    kind=MetricKind.GAUGE,
    help="1 while the plugins' configuration has a mistake and an earlier one is in force.",
)

PICKER_PLUGIN_CATALOG: Final = (
    PRODUCER_LATENCY,
    PRODUCER_FAILURES,
    PLUGIN_FAILURES,
    CONFIG_LOADS,
    CONFIG_REFUSED,
)
"""All of them, in the order of the reference page."""
