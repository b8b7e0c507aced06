"""Settings of ``inferencecache simulate``: the simulated engines and what they are asked."""

from dataclasses import dataclass, field

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateSettings:
    """How large the fleet is, how fast its engines are, and what is compared."""

    traffic: str = knob(
        "trace",
        flag="traffic",
        kind=KnobKind.TEXT,
        choices=("trace", "sessions", "cold"),
        help="What is played: a trace, generated agent sessions, or prompts that share nothing.",
    )
    strategies: str = knob(
        "all",
        flag="strategies",
        kind=KnobKind.TEXT,
        help="Strategies to compare, by name and separated by commas; all compares every one.",
    )
    engines: int = knob(
        8,
        flag="engines",
        kind=KnobKind.INTEGER,
        unit="engines",
        minimum=1,
        maximum=1_024,
        help="Simulated engines.",
    )
    cache_blocks: int = knob(
        2_000,
        flag="cache-blocks",
        kind=KnobKind.INTEGER,
        unit="blocks of 512 tokens",
        minimum=1,
        maximum=10_000_000,
        help="Capacity of each engine's cache.",
    )
    prefill_tokens_per_s: int = knob(
        8_000,
        flag="prefill-tokens-per-second",
        kind=KnobKind.INTEGER,
        unit="tokens/s",
        minimum=1,
        maximum=100_000_000,
        help="How fast an engine computes a prompt; it computes one at a time.",
    )
    base_ttft_ns: int = knob(
        50 * NS_PER_MS,
        flag="base-ttft",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        maximum=600 * NS_PER_S,
        help="Time from the end of a prompt's computation to its first token.",
    )
    decode_token_ns: int = knob(
        20 * NS_PER_MS,
        flag="decode-token",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        maximum=600 * NS_PER_S,
        help="Time between two tokens of an answer.",
    )
    concurrency_max: int = knob(
        256,
        flag="concurrency",
        kind=KnobKind.INTEGER,
        unit="requests",
        minimum=1,
        maximum=1_000_000,
        help="Most requests that an engine computes and answers at a time.",
    )
    speed: float = knob(
        1.0,
        flag="speed",
        kind=KnobKind.NUMBER,
        unit="times",
        minimum=0.001,
        maximum=1_000.0,
        help="Let requests arrive this many times faster.",
    )
    requests: int = knob(
        0,
        flag="limit",
        kind=KnobKind.INTEGER,
        unit="requests",
        minimum=0,
        maximum=10_000_000,
        help="Play the first so many requests; 0 plays all.",
    )
    seed: int = knob(
        0,
        flag="seed",
        kind=KnobKind.INTEGER,
        minimum=0,
        maximum=2**32 - 1,
        help="Seed of everything that is drawn; the same seed gives the same table.",
    )
    sticky_share_min: float = knob(
        0.5,
        flag="sticky-min-share",
        kind=KnobKind.NUMBER,
        unit="of the prompt",
        minimum=0.0,
        maximum=1.0,
        help="Prefix sticky follows an earlier prompt that shares at least this much.",
    )
    index_ttl_ns: int = knob(
        24 * 3_600 * NS_PER_S,
        flag="index-ttl",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Entry TTL of the index: engines report a block once, so it must outlive the run.",
    )
    generated_requests: int = knob(
        4_000,
        flag="generated-requests",
        kind=KnobKind.INTEGER,
        unit="requests",
        minimum=1,
        maximum=10_000_000,
        help="Requests of generated traffic, where --limit says nothing.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What generated agent sessions look like."""

    requests_per_s: float = knob(
        8.0,
        flag="session-requests-per-second",
        kind=KnobKind.NUMBER,
        unit="requests/s",
        minimum=0.001,
        maximum=100_000.0,
        help="Turns of all sessions together that arrive in a second, on average.",
    )
    applications: int = knob(
        6,
        flag="session-applications",
        kind=KnobKind.INTEGER,
        unit="applications",
        minimum=1,
        maximum=100_000,
        help="Applications; each has a system prompt of its own.",
    )
    system_tokens: int = knob(
        4_096,
        flag="session-system-tokens",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=0,
        maximum=1_000_000,
        help="Length of a system prompt.",
    )
    turns_mean: float = knob(
        8.0,
        flag="session-turns",
        kind=KnobKind.NUMBER,
        unit="turns",
        minimum=1.0,
        maximum=10_000.0,
        help="Turns of a session, on average.",
    )
    turn_tokens_mean: float = knob(
        600.0,
        flag="session-turn-tokens",
        kind=KnobKind.NUMBER,
        unit="tokens",
        minimum=1.0,
        maximum=1_000_000.0,
        help="What each turn adds to the prompt, on average: a question, or a tool's answer.",
    )
    output_tokens_mean: float = knob(
        200.0,
        flag="session-output-tokens",
        kind=KnobKind.NUMBER,
        unit="tokens",
        minimum=1.0,
        maximum=1_000_000.0,
        help="Length of an answer, on average; it is part of the next prompt.",
    )
    pause_mean_ns: int = knob(
        10 * NS_PER_S,
        flag="session-pause",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        maximum=86_400 * NS_PER_S,
        help="Time between an answer and the next turn, on average.",
    )
    answer_token_ns: int = knob(
        20 * NS_PER_MS,
        flag="session-answer-token",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        maximum=600 * NS_PER_S,
        help="Time that each token of an answer puts the next turn off.",
    )
    session_tokens_max: int = knob(
        65_536,
        flag="session-max-tokens",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=1,
        maximum=100_000_000,
        help="A session that would get longer ends.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdSettings:
    """What generated prompts that share nothing look like."""

    requests_per_s: float = knob(
        8.0,
        flag="cold-requests-per-second",
        kind=KnobKind.NUMBER,
        unit="requests/s",
        minimum=0.001,
        maximum=100_000.0,
        help="Prompts that arrive in a second, on average.",
    )
    prompt_tokens_median: int = knob(
        3_000,
        flag="cold-prompt-tokens",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=1,
        maximum=1_000_000,
        help="Median length of a prompt; lengths are distributed log-normally.",
    )
    prompt_spread: float = knob(
        1.0,
        flag="cold-prompt-spread",
        kind=KnobKind.NUMBER,
        unit="of the logarithm",
        minimum=0.0,
        maximum=5.0,
        help="Standard deviation of the logarithm of a prompt's length.",
    )
    prompt_tokens_max: int = knob(
        131_072,
        flag="cold-max-prompt-tokens",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=1,
        maximum=100_000_000,
        help="Longest prompt.",
    )
    output_tokens_mean: float = knob(
        200.0,
        flag="cold-output-tokens",
        kind=KnobKind.NUMBER,
        unit="tokens",
        minimum=1.0,
        maximum=1_000_000.0,
        help="Length of an answer, on average.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateCommandSettings:
    """The settings of the command, by group."""

    simulate: SimulateSettings = field(default_factory=SimulateSettings)
    sessions: SessionSettings = field(default_factory=SessionSettings)
    cold: ColdSettings = field(default_factory=ColdSettings)
