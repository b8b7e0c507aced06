"""Settings of ``inferencecache demo``: where, how long, how fast, how large."""

from dataclasses import dataclass, field

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """Three fake engines, their subscribers, a server, a gateway and a provider, on loopback."""

    listen_address: str = knob(
        "127.0.0.1:8090",
        flag="listen",
        kind=KnobKind.ADDRESS,
        help="Where the gateway takes requests.",
    )
    engine_control_address: str = knob(
        "127.0.0.1:8091",
        flag="engine-control-listen",
        kind=KnobKind.ADDRESS,
        help="Where engines can be killed.",
    )
    control_address: str = knob(
        "127.0.0.1:8081",
        flag="control-listen",
        kind=KnobKind.ADDRESS,
        help="Where the server shows its decisions and objects.",
    )
    seconds: int = knob(
        0,
        flag="seconds",
        kind=KnobKind.INTEGER,
        unit="seconds",
        minimum=0,
        maximum=86_400,
        help="How long the demo runs; 0 goes on until Ctrl-C.",
    )
    requests_per_s: int = knob(
        4,
        flag="rate",
        kind=KnobKind.INTEGER,
        unit="requests per second",
        minimum=0,
        maximum=1_000,
        help="Prompts that are made up and routed by lookups, beside the requests that come "
        "through the gateway.",
    )
    cache_blocks: int = knob(
        1_500,
        flag="cache-blocks",
        kind=KnobKind.INTEGER,
        unit="blocks of 16 tokens",
        minimum=16,
        maximum=1_000_000,
        help="Room in the cache of each engine.",
    )
    prefill_tokens_per_s: int = knob(
        2_000,
        flag="prefill-rate",
        kind=KnobKind.INTEGER,
        unit="tokens per second",
        minimum=1,
        maximum=1_000_000_000,
        help="How fast an engine computes the prompts of requests.",
    )
    base_ns: int = knob(
        50 * NS_PER_MS,
        flag="base-latency",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="What every request takes besides until its first token.",
    )
    down_ns: int = knob(
        10 * NS_PER_S,
        flag="down-for",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="How long an engine that is killed is away.",
    )
    suppress_ns: int = knob(
        5 * NS_PER_S,
        flag="suppress-for",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long what fails is left alone at first.",
    )
    families: int = knob(
        48,
        flag="families",
        kind=KnobKind.INTEGER,
        unit="prefixes",
        minimum=1,
        maximum=100_000,
        help="Different shared prefixes among the prompts.",
    )
    shared_blocks: int = knob(
        64,
        flag="shared-blocks",
        kind=KnobKind.INTEGER,
        unit="blocks of 16 tokens",
        minimum=1,
        maximum=1_000,
        help="Length of a shared prefix.",
    )
    seed: int = knob(
        0,
        flag="seed",
        kind=KnobKind.INTEGER,
        minimum=0,
        maximum=2**32 - 1,
        help="Seed of the prompts.",
    )
    restarts_engine: bool = knob(
        True,
        flag="restart",
        kind=KnobKind.BOOLEAN,
        help="Restart one engine half-way through --seconds, to show how its blocks leave the "
        "index.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCommandSettings:
    """The settings of the command, by group."""

    demo: DemoSettings = field(default_factory=DemoSettings)
