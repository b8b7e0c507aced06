"""Settings of what the picker believes each engine has to do."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerLoadSettings:
    """How long a request counts whose caller says nothing, and how engines are asked."""

    age_factor: float = knob(
        2.0,
        flag="picker-load-age-factor",
        kind=KnobKind.NUMBER,
        unit="times",
        minimum=1.0,
        maximum=1_000.0,
        help="A request no longer counts as load after this many times the 99th percentile.",
    )
    age_min_ns: int = knob(
        10 * NS_PER_S,
        flag="picker-load-age-min",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Shortest time for which a request without a report counts as load.",
    )
    age_samples_min: int = knob(
        100,
        flag="picker-load-age-min-samples",
        kind=KnobKind.INTEGER,
        unit="requests",
        minimum=1,
        maximum=10_000,
        help="With fewer ends reported, requests count as load until their decision expires.",
    )
    age_samples_max: int = knob(
        1_000,
        flag="picker-load-age-max-samples",
        kind=KnobKind.INTEGER,
        unit="requests",
        minimum=1,
        maximum=10_000,
        help="From how many of the last reported ends that percentile is taken.",
    )
    signal_stale_ns: int = knob(
        2 * NS_PER_S,
        flag="picker-scrape-stale",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="What an engine said of its load counts no longer after this time.",
    )
    scrape_interval_ns: int = knob(
        200 * NS_PER_MS,
        flag="picker-scrape-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="How often an engine's page of metrics is read, where its worker set names one; 0 "
        "reads none.",
    )
    scrape_timeout_ns: int = knob(
        NS_PER_S,
        flag="picker-scrape-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Longest wait for such a page.",
    )
    scrape_pause_max_ns: int = knob(
        10 * NS_PER_S,
        flag="picker-scrape-pause-max",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Longest pause between two looks at a page that cannot be read; each failure in a row "
        "doubles it, from the interval on.",
    )
    scrape_bytes_max: int = knob(
        4 * 1_048_576,
        flag="picker-scrape-max-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        help="How much of such a page is read.",
    )
    scrape_series_max: int = knob(
        256,
        flag="picker-scrape-max-series",
        kind=KnobKind.INTEGER,
        unit="series",
        minimum=1,
        maximum=100_000,
        help="Most series of one name that count on such a page; the last ones do.",
    )
    scrapes_max: int = knob(
        16,
        flag="picker-scrape-concurrency",
        kind=KnobKind.INTEGER,
        unit="pages",
        minimum=1,
        maximum=1_000,
        help="Most such pages that are read at the same time.",
    )
