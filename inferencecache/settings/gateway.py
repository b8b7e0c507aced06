"""Settings of ``inferencecache gateway``, by group."""

from dataclasses import dataclass, field

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.collector import CollectorSettings
from inferencecache.settings.delivery import ServerTlsSettings
from inferencecache.settings.ending import EndingSettings
from inferencecache.settings.gateway_listen import (
    GatewayListenSettings,
    GatewayPageSettings,
    GatewayTlsSettings,
)
from inferencecache.settings.gateway_upstream import GatewayUpstreamSettings
from inferencecache.settings.knob import KnobKind, knob
from inferencecache.settings.logs import LogSettings
from inferencecache.settings.resources import ResourceSettings

_MIB = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayPickerSettings:
    """Whom the gateway asks where requests go."""

    target: str = knob(
        "127.0.0.1:9090",
        flag="picker",
        kind=KnobKind.TEXT,
        help="Address of the picker, HOST:PORT or a target of gRPC's own.",
    )
    pool: str = knob(
        "",
        flag="pool",
        kind=KnobKind.TEXT,
        help="Pool that requests are picked from, NAME or NAMESPACE/NAME; empty names none.",
    )
    pick_timeout_ns: int = knob(
        5 * NS_PER_S,
        flag="pick-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long the choice of a destination may take.",
    )
    pull_timeout_ns: int = knob(
        600 * NS_PER_S,
        flag="pull-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long handing a body on to a destination may take.",
    )
    connect_timeout_ns: int = knob(
        NS_PER_S,
        flag="picker-connect-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=100 * NS_PER_MS,
        help="How long an attempt to connect to the picker may take.",
    )
    report_timeout_ns: int = knob(
        5 * NS_PER_S,
        flag="picker-report-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long the picker may take to acknowledge a report.",
    )
    reports_max: int = knob(
        4_096,
        flag="max-pending-reports",
        kind=KnobKind.INTEGER,
        unit="reports",
        minimum=1,
        maximum=1_000_000,
        help="Reports that wait for the picker; more are dropped and counted.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRequestSettings:
    """How requests are read, and what is kept of them."""

    tenant_header: str = knob(
        "x-tenant-id",
        flag="tenant-header",
        kind=KnobKind.TEXT,
        help="Header that names the tenant; not looked at where there are API keys.",
    )
    tenant_bytes_max: int = knob(
        4_096,
        flag="max-tenant-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes of UTF-8",
        minimum=64,
        help="Longest tenant taken from a client; no more than --picker-max-identifier-bytes of "
        "the server, or bodies are sent there in vain.",
    )
    api_key_file: str = knob(
        "",
        flag="api-keys",
        kind=KnobKind.TEXT,
        help="File of API keys, a line for each: its SHA-256 in hexadecimal, and the tenant. With "
        "it every request needs one of them.",
    )
    qos_header: str = knob(
        "x-qos-class",
        flag="qos-header",
        kind=KnobKind.TEXT,
        help="Header that says how long a request can wait: interactive, batch or deferrable.",
    )
    request_id_header: str = knob(
        "x-request-id",
        flag="request-id-header",
        kind=KnobKind.TEXT,
        help="Header with the request's name, in requests and answers; one is made up if missing.",
    )
    passed_headers: str = knob(
        "",
        flag="pass-headers",
        kind=KnobKind.TEXT,
        help="Headers, separated by commas, that plugins of the picker see.",
    )
    passed_bytes_max: int = knob(
        32 * 1_024,
        flag="max-passed-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        help="Most bytes of those headers together, names and 32 for each of them included; less "
        "than --grpc-max-metadata-bytes of the server, or bodies are sent there in vain.",
    )
    body_bytes_max: int = knob(
        128 * _MIB,
        flag="max-body-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        help="Largest body taken from a client.",
    )
    chunk_bytes: int = knob(
        256 * 1_024,
        flag="push-chunk-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        maximum=_MIB,
        help="Largest piece in which a body goes to the picker.",
    )
    replay_bytes_max: int = knob(
        _MIB,
        flag="max-replay-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=0,
        help="Largest body that is kept until its answer begins, so that it can be sent elsewhere.",
    )
    replay_total_bytes_max: int = knob(
        256 * _MIB,
        flag="max-replay-total-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=0,
        help="Most bytes of bodies kept for that; beyond it bodies are sent once.",
    )
    upload_idle_ns: int = knob(
        20 * NS_PER_S,
        flag="upload-idle",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Longest silence of a client that sends a body; shorter than --picker-upload-idle of "
        "the server.",
    )
    upload_timeout_ns: int = knob(
        1_800 * NS_PER_S,
        flag="upload-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Longest time in which a body arrives.",
    )
    shows_decision: bool = knob(
        False,
        flag="show-decision",
        kind=KnobKind.BOOLEAN,
        help="Tell clients in headers where their request went, and why.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayProcessSettings:
    """How the gateway ends, and how much it complains until then."""

    drain_ns: int = knob(
        30 * NS_PER_S,
        flag="drain-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Longest time that running requests and their reports get to finish after a signal.",
    )
    failure_log_interval_ns: int = knob(
        NS_PER_S,
        flag="failure-log-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Attempts that fail in the same way are logged at most this often.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """What ``inferencecache gateway`` can be told."""

    listen: GatewayListenSettings = field(default_factory=GatewayListenSettings)
    tls: GatewayTlsSettings = field(default_factory=GatewayTlsSettings)
    picker: GatewayPickerSettings = field(default_factory=GatewayPickerSettings)
    picker_tls: ServerTlsSettings = field(default_factory=ServerTlsSettings)
    requests: GatewayRequestSettings = field(default_factory=GatewayRequestSettings)
    upstream: GatewayUpstreamSettings = field(default_factory=GatewayUpstreamSettings)
    resources: ResourceSettings = field(default_factory=ResourceSettings)
    pages: GatewayPageSettings = field(default_factory=GatewayPageSettings)
    process: GatewayProcessSettings = field(default_factory=GatewayProcessSettings)
    collector: CollectorSettings = field(default_factory=CollectorSettings)
    ending: EndingSettings = field(default_factory=EndingSettings)
    logs: LogSettings = field(default_factory=LogSettings)
