"""Settings of the ranker."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingSettings:
    """The knobs of the score; each off switch restores the plain product."""

    pressure_weight: float = knob(
        1.0,
        flag="pressure-weight",
        kind=KnobKind.NUMBER,
        unit="ratio",
        minimum=0,
        maximum=1_000,
        help="Share of the score that full pressure takes away; 0 ignores pressure.",
    )
    slo_tight_ttft_ms: int = knob(
        200,
        flag="slo-tight-ttft-ms",
        kind=KnobKind.INTEGER,
        unit="ms",
        minimum=0,
        help="A ttft_ms below this makes a request tight; 0 means never.",
    )
    slo_tight_bias: float = knob(
        1.0,
        flag="slo-tight-bias",
        kind=KnobKind.NUMBER,
        unit="ratio",
        minimum=0,
        maximum=1_000,
        help="Extra weight of freshness for tight requests; 0 means none.",
    )
    tenant_hot_hit_rate_min: float = knob(
        0.1,
        flag="tenant-hot-min-hit-rate",
        kind=KnobKind.NUMBER,
        unit="ratio",
        minimum=0,
        help="Smallest reported hit rate of a replica that counts as warm.",
    )
    tenant_hot_age_max_ns: int = knob(
        5 * 60 * NS_PER_S,
        flag="tenant-hot-max-age",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Oldest statistics that make a replica count as warm; 0 turns TENANT_HOT off.",
    )
