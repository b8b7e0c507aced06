"""Settings of the metrics page."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """How much the metrics page may grow and how closely the event loop is watched."""

    labels_max: int = knob(
        1_000,
        flag="max-metric-labels",
        kind=KnobKind.INTEGER,
        unit="label values",
        minimum=0,
        maximum=100_000,
        help="Models, tenants and destinations, each, with a metric label of their own; all "
        "further ones share one.",
    )
    label_idle_ns: int = knob(
        300 * NS_PER_S,
        flag="metric-label-idle",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="How long a model, tenant or destination keeps its metric label although it has "
        "nothing and another waits for one.",
    )
    ingest_lag_max_ns: int = knob(
        3_600 * NS_PER_S,
        flag="max-ingest-lag",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        help="An update older than this when it was applied counts as this old in the metrics: its "
        "clock or its unit is wrong, and a sum that it was added to could never be used again.",
    )
    loop_lag_interval_ns: int = knob(
        500 * NS_PER_MS,
        flag="loop-lag-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Pause between two measurements of the event loop's lag; 0 means never.",
    )
