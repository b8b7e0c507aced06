"""Settings of the gateway's listeners: the one for clients, and the one for its own pages."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob
from inferencecache.settings.own_pages import OwnPageLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayListenSettings:
    """Where clients come in."""

    bind_address: str = knob(
        ":8090",
        flag="listen",
        kind=KnobKind.ADDRESS,
        help="Where requests of clients are taken.",
    )
    header_timeout_ns: int = knob(
        5 * NS_PER_S,
        flag="header-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Close a client's connection whose request line and headers take longer to arrive.",
    )
    answer_timeout_ns: int = knob(
        60 * NS_PER_S,
        flag="answer-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Close a client's connection that takes nothing of its answer for this long.",
    )
    idle_timeout_ns: int = knob(
        75 * NS_PER_S,
        flag="idle-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        help="Close a client's connection that sends no complete request for this long.",
    )
    connections_max: int = knob(
        4_096,
        flag="max-connections",
        kind=KnobKind.INTEGER,
        unit="connections",
        minimum=1,
        maximum=100_000,
        help="Open connections of clients, each with one request at a time; when all are taken, a "
        "peer with few of them gets one of the peer with most.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTlsSettings:
    """What the listener for clients proves itself with."""

    cert_file: str = knob(
        "",
        flag="tls-cert-file",
        kind=KnobKind.TEXT,
        help="Certificate chain (PEM) shown to clients; without one they are served in plaintext.",
    )
    key_file: str = knob(
        "",
        flag="tls-key-file",
        kind=KnobKind.TEXT,
        help="Private key (PEM) of that certificate.",
    )
    check_interval_ns: int = knob(
        NS_PER_S,
        flag="tls-check-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=10 * NS_PER_MS,
        maximum=600 * NS_PER_S,
        help="Look for a changed certificate and key this often.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayPageSettings(OwnPageLimits):
    """Where the gateway shows its own state."""

    bind_address: str = knob(
        ":8083",
        flag="metrics-listen",
        kind=KnobKind.ADDRESS,
        help="Where health, readiness and metrics of the gateway are served over plain HTTP.",
    )
