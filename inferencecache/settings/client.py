"""Settings of the client library."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How long a client waits, how it keeps its connection, and what it holds at most."""

    lookup_deadline_ns: int = knob(
        50 * NS_PER_MS,
        flag="client-lookup-deadline",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long one lookup may take before the client goes on without a hint.",
    )
    delivery_timeout_ns: int = knob(
        10 * NS_PER_S,
        flag="client-delivery-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long a reporter waits for the server to take or acknowledge a report.",
    )
    keepalive_interval_ns: int = knob(
        30 * NS_PER_S,
        flag="client-keepalive-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        help="Pause between pings on a silent connection, with or without calls.",
    )
    keepalive_timeout_ns: int = knob(
        10 * NS_PER_S,
        flag="client-keepalive-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=100 * NS_PER_MS,
        help="How long a ping may stay unanswered before the connection counts as dead.",
    )
    connect_timeout_ns: int = knob(
        5 * NS_PER_S,
        flag="client-connect-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=100 * NS_PER_MS,
        help="How long one attempt to connect may take.",
    )
    reconnect_initial_ns: int = knob(
        100 * NS_PER_MS,
        flag="client-reconnect-initial",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Pause before the second attempt to connect; later pauses grow.",
    )
    reconnect_max_ns: int = knob(
        5 * NS_PER_S,
        flag="client-reconnect-max",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=100 * NS_PER_MS,
        help="Longest pause between two attempts to connect.",
    )
    answer_bytes_max: int = knob(
        16 * 1024 * 1024,
        flag="client-max-answer-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        maximum=2**31 - 1,
        help="Largest answer taken; echoed token ids of a long prompt need megabytes.",
    )
    warnings_max: int = knob(
        1_024,
        flag="client-max-warnings",
        kind=KnobKind.INTEGER,
        unit="warnings",
        minimum=0,
        help="Configuration warnings raised per client; later ones are only counted.",
    )
    unsent_updates_max: int = knob(
        64,
        flag="client-max-unsent-updates",
        kind=KnobKind.INTEGER,
        unit="updates",
        minimum=1,
        help="Updates a blocking reporter queues before report() waits for the server.",
    )
    events_in_flight_max: int = knob(
        64,
        flag="client-max-events-in-flight",
        kind=KnobKind.INTEGER,
        unit="events",
        minimum=1,
        help="Evictions a reporter sends before it waits for an acknowledgement.",
    )
