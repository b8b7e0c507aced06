"""Settings of the control listener."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSettings:
    """Where the control surface is served, over what, and how much of it at a time."""

    bind_address: str = knob(
        ":8081",
        flag="snapshot-bind-address",
        kind=KnobKind.ADDRESS,
        help="Where the control listener serves /snapshot, /policy, /probe and /debug.",
    )
    tls_cert_file: str = knob(
        "",
        flag="control-tls-cert-file",
        kind=KnobKind.TEXT,
        help="Certificate chain (PEM) of the control listener; without one it serves plain HTTP.",
    )
    tls_key_file: str = knob(
        "",
        flag="control-tls-key-file",
        kind=KnobKind.TEXT,
        help="Private key (PEM) of that certificate.",
    )
    tls_client_ca_file: str = knob(
        "",
        flag="control-tls-client-ca-file",
        kind=KnobKind.TEXT,
        help="Certificate authorities (PEM) of clients that prove who they are by certificate.",
    )
    header_timeout_ns: int = knob(
        5 * NS_PER_S,
        flag="control-header-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Close a control connection whose request line and headers take longer to arrive.",
    )
    connections_max: int = knob(
        256,
        flag="control-max-connections",
        kind=KnobKind.INTEGER,
        unit="connections",
        minimum=1,
        maximum=100_000,
        help="Open control connections, handshakes included; when all are taken, a peer with few "
        "of them gets one of the peer with most.",
    )
    answer_timeout_ns: int = knob(
        30 * NS_PER_S,
        flag="control-answer-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Close a control connection whose peer does not take what it has asked for.",
    )
    idle_timeout_ns: int = knob(
        75 * NS_PER_S,
        flag="control-idle-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        help="Close a control connection that stays silent between two requests for this long.",
    )
    body_timeout_ns: int = knob(
        10 * NS_PER_S,
        flag="control-body-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Longest time a request body may take to arrive.",
    )
    requests_max: int = knob(
        32,
        flag="control-max-requests",
        kind=KnobKind.INTEGER,
        unit="requests",
        minimum=1,
        maximum=10_000,
        help="Requests the control listener works on at a time; further ones are told 503.",
    )
    explain_body_bytes_max: int = knob(
        8 * 1_048_576,
        flag="control-max-explain-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1,
        help="Largest request body for /debug/picker/explain.",
    )
    probe_body_bytes_max: int = knob(
        4_096,
        flag="probe-max-body-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=64,
        maximum=1_048_576,
        help="Largest body of a /probe request.",
    )
