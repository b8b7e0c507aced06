"""Settings of what can be picked: what stands in where a worker set or a pool says nothing."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSettings:
    """What is taken for granted about engines and tiers until an object says otherwise."""

    prefill_tokens_per_s: int = knob(
        8_000,
        flag="fleet-prefill-tokens-per-second",
        kind=KnobKind.INTEGER,
        unit="tokens/s",
        minimum=1,
        help="How fast an engine reads a prompt, where its worker set says nothing.",
    )
    base_ttft_ns: int = knob(
        50 * NS_PER_MS,
        flag="fleet-base-ttft",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        maximum=600 * NS_PER_S,
        help="An idle engine's time to the first token of an empty prompt, if its set says none.",
    )
    concurrency_max: int = knob(
        256,
        flag="fleet-max-concurrency",
        kind=KnobKind.INTEGER,
        unit="requests",
        minimum=1,
        help="Most requests an engine works on at once, where its worker set says nothing.",
    )
    spill_to_providers: bool = knob(
        default=False,
        flag="fleet-spill-to-providers",
        kind=KnobKind.BOOLEAN,
        help="Whether full workers lead INTERACTIVE requests to a provider, if no pool says.",
    )
    saturation_percent_max: int = knob(
        100,
        flag="fleet-max-saturation-percent",
        kind=KnobKind.INTEGER,
        unit="percent",
        minimum=1,
        help="At which share of its members' concurrency a tier is full, if its pool says none.",
    )
