"""Settings of the public HTTP listener."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """Where ``/healthz``, ``/readyz`` and ``/metrics`` are served."""

    bind_address: str = knob(
        ":8080",
        flag="http-bind-address",
        kind=KnobKind.ADDRESS,
        help="Where health, readiness and metrics are served over plain HTTP.",
    )
    header_timeout_ns: int = knob(
        5 * NS_PER_S,
        flag="http-header-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Close an HTTP connection whose request line and headers take longer to arrive.",
    )
    connections_max: int = knob(
        1_024,
        flag="http-max-connections",
        kind=KnobKind.INTEGER,
        unit="connections",
        minimum=1,
        maximum=100_000,
        help="Open HTTP connections; when all are taken, a peer with few of them gets one of the "
        "peer with most.",
    )
    answer_timeout_ns: int = knob(
        30 * NS_PER_S,
        flag="http-answer-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Close an HTTP connection whose peer does not take what it has asked for.",
    )
    idle_timeout_ns: int = knob(
        75 * NS_PER_S,
        flag="http-idle-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        help="Close an HTTP connection that sends no complete request for this long.",
    )
