"""Settings of how the picker foresees the time to a request's first token."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class TtftSettings:
    """What counts as evidence, and how fast it ages."""

    observed_ms_max: int = knob(
        600_000,
        flag="picker-ttft-max-ms",
        kind=KnobKind.INTEGER,
        unit="ms",
        minimum=1,
        help="A reported time to the first token above this counts as this.",
    )
    samples_min: int = knob(
        10,
        flag="picker-ttft-min-samples",
        kind=KnobKind.INTEGER,
        unit="reports",
        minimum=1,
        maximum=1_000,
        help="Fewest recent reports for a predicted time to the first token.",
    )
    window_ns: int = knob(
        180 * NS_PER_S,
        flag="picker-ttft-window",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        help="How long a report counts as recent.",
    )
    half_life_ns: int = knob(
        60 * NS_PER_S,
        flag="picker-ttft-half-life",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        help="In which time a report loses half of its weight in a prediction.",
    )
    prior_samples: float = knob(
        5.0,
        flag="picker-ttft-prior-samples",
        kind=KnobKind.NUMBER,
        unit="reports",
        minimum=0.1,
        maximum=1_000_000.0,
        help="As many reports of its own outweigh what an endpoint takes from its worker set.",
    )
    outlier_spreads: float = knob(
        3.0,
        flag="picker-ttft-outlier-spreads",
        kind=KnobKind.NUMBER,
        unit="spreads",
        minimum=0.1,
        maximum=1_000.0,
        help="A report this many typical errors off pulls no harder than one at that distance.",
    )
    waiting_request_ms: float = knob(
        20.0,
        flag="picker-ttft-waiting-request-ms",
        kind=KnobKind.NUMBER,
        unit="ms",
        minimum=0.0,
        maximum=600_000.0,
        help="What each request waiting in an engine's queue adds to an estimated time.",
    )
    request_ahead_ms: float = knob(
        1.0,
        flag="picker-ttft-request-ahead-ms",
        kind=KnobKind.NUMBER,
        unit="ms",
        minimum=0.0,
        maximum=600_000.0,
        help="What each request that an engine has to do adds to an estimated time.",
    )
    provider_ms: float = knob(
        1_000.0,
        flag="picker-ttft-provider-ms",
        kind=KnobKind.NUMBER,
        unit="ms",
        minimum=0.0,
        maximum=600_000.0,
        help="Estimated time of a provider from which too little was reported lately.",
    )
    workers_max: int = knob(
        10_000,
        flag="picker-ttft-max-workers",
        kind=KnobKind.INTEGER,
        unit="workers",
        minimum=1,
        help="Most workers whose times are learnt; beyond, the longest unheard of is forgotten.",
    )
    providers_max: int = knob(
        4_096,
        flag="picker-ttft-max-histories",
        kind=KnobKind.INTEGER,
        unit="histories",
        minimum=1,
        help="Most combinations of provider, model and prompt size whose times are remembered.",
    )
