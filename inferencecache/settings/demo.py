"""Settings of ``inferencecache demo``: how long, how fast, how large."""

from dataclasses import dataclass, field

from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """Three fake engines, their subscribers, a server and a gateway, all on loopback."""

    seconds: int = knob(
        30,
        flag="seconds",
        kind=KnobKind.INTEGER,
        unit="seconds",
        minimum=0,
        maximum=86_400,
        help="How long the gateway sends requests; 0 goes on until Ctrl-C.",
    )
    requests_per_s: int = knob(
        40,
        flag="rate",
        kind=KnobKind.INTEGER,
        unit="requests per second",
        minimum=1,
        maximum=1_000,
        help="Requests that the gateway sends.",
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
        True,  # noqa: FBT003 - a default, not a call by position
        flag="restart",
        kind=KnobKind.BOOLEAN,
        help="Restart one engine half-way, to show how its blocks leave the index.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCommandSettings:
    """The settings of the command, by group."""

    demo: DemoSettings = field(default_factory=DemoSettings)
