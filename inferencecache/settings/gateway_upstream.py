"""Settings of what the gateway does with destinations, and without any."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayUpstreamSettings:
    """How requests are sent on, and answers read."""

    secrets_directory: str = knob(
        "",
        flag="secrets",
        kind=KnobKind.TEXT,
        help="Directory below which the files lie that GatewayBackend objects name.",
    )
    fallback_url: str = knob(
        "",
        flag="fallback",
        kind=KnobKind.TEXT,
        help="Base URL to which requests go while the picker cannot be asked; empty answers 503.",
    )
    connect_timeout_ns: int = knob(
        5 * NS_PER_S,
        flag="upstream-connect-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long connecting to a destination may take.",
    )
    first_byte_timeout_ns: int = knob(
        600 * NS_PER_S,
        flag="upstream-first-byte-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long a destination may take until its answer begins.",
    )
    silence_timeout_ns: int = knob(
        120 * NS_PER_S,
        flag="upstream-silence-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Longest pause within an answer.",
    )
    keepalive_ns: int = knob(
        4 * NS_PER_S,
        flag="upstream-keepalive",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long an unused connection to a destination is kept; shorter than the destination "
        "keeps it, or a request may meet its end.",
    )
    attempts_max: int = knob(
        2,
        flag="max-attempts",
        kind=KnobKind.INTEGER,
        unit="attempts",
        minimum=1,
        maximum=10,
        help="How often a request is sent, while nothing of an answer has come; each attempt asks "
        "the picker anew, which leads it elsewhere as long as anybody else can take it.",
    )
    scan_bytes_max: int = knob(
        256 * 1_024,
        flag="max-usage-scan-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        help="Most bytes of an answer that are remembered in order to read its usage.",
    )
    retry_after_ns: int = knob(
        NS_PER_S,
        flag="retry-after",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        help="What clients are told, in whole seconds, when there is nobody to take a request.",
    )
