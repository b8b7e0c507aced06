"""Settings of the gRPC listener."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob

_MILLISECONDS_MAX_NS = (2**31 - 1) * NS_PER_MS
"""gRPC takes these times as 32-bit milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcSettings:
    """Where the service listens, what it accepts and how it tells dead peers from idle ones."""

    bind_address: str = knob(
        ":9090",
        flag="grpc-bind-address",
        kind=KnobKind.ADDRESS,
        help="Where the gRPC services listen.",
    )
    receive_bytes_max: int = knob(
        16 * 1_024 * 1_024,
        flag="grpc-max-receive-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        maximum=2**31 - 1,
        help="Largest message a client may send; a larger one ends in RESOURCE_EXHAUSTED.",
    )
    parse_bytes_max: int = knob(
        65_536,
        flag="grpc-max-parse-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        maximum=2**31 - 1,
        help="Longest message that is parsed in one go. A longer update is read in slices; longer "
        "ones of calls whose messages are short end in INVALID_ARGUMENT.",
    )
    metadata_bytes_max: int = knob(
        64 * 1_024,
        flag="grpc-max-metadata-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        maximum=2**31 - 1,
        help="Longest metadata a call may carry; longer ones end in RESOURCE_EXHAUSTED.",
    )
    streams_max: int = knob(
        10_000,
        flag="grpc-max-concurrent-streams",
        kind=KnobKind.INTEGER,
        unit="calls per connection",
        minimum=1,
        maximum=2**31 - 1,
        help="Calls one connection may have open, and calls that may wait for the busy server.",
    )
    connections_max: int = knob(
        10_000,
        flag="grpc-max-connections",
        kind=KnobKind.INTEGER,
        unit="connections",
        minimum=1,
        maximum=1_000_000,
        help="Open connections, handshakes included; further ones are closed at once.",
    )
    handshake_timeout_ns: int = knob(
        10 * NS_PER_S,
        flag="grpc-handshake-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        maximum=_MILLISECONDS_MAX_NS,
        help="Close a connection that does not begin to speak HTTP/2, and TLS where that is on, "
        "for this long.",
    )
    keepalive_time_ns: int = knob(
        60 * NS_PER_S,
        flag="grpc-keepalive-time",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        maximum=_MILLISECONDS_MAX_NS,
        help="Silence of a peer after which the server pings it.",
    )
    keepalive_timeout_ns: int = knob(
        20 * NS_PER_S,
        flag="grpc-keepalive-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=1_000_000,
        maximum=_MILLISECONDS_MAX_NS,
        help="Wait for the answer to a ping before the connection and its streams are freed.",
    )
    ping_interval_min_ns: int = knob(
        NS_PER_S,
        flag="grpc-min-ping-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        maximum=_MILLISECONDS_MAX_NS,
        help="Clients may ping this often; only more frequent pings count against the limit.",
    )
    ping_strikes_max: int = knob(
        0,
        flag="grpc-max-ping-strikes",
        kind=KnobKind.INTEGER,
        unit="pings",
        minimum=0,
        maximum=1_000,
        help="Too frequent pings before a connection is closed; 0 never closes one for that.",
    )
    compression: str = knob(
        "none",
        flag="grpc-compression",
        kind=KnobKind.TEXT,
        choices=("none", "deflate", "gzip"),
        help="Compression of answers, used only towards clients that accept it.",
    )
    ingest_slice_entries: int = knob(
        1_024,
        flag="ingest-slice-entries",
        kind=KnobKind.INTEGER,
        unit="prefix entries",
        minimum=1,
        help="Entries of one update read before the event loop gets its turn. Up to 4,096 that "
        "name one block each and are alike are read at once, which takes less.",
    )
    update_blocks_max: int = knob(
        1_048_576,
        flag="max-update-blocks",
        kind=KnobKind.INTEGER,
        unit="prefix entries and blocks of chains",
        minimum=1,
        help="Most that one update may carry; one with more is not applied, and counts as one that "
        "does not parse.",
    )
    failure_log_interval_ns: int = knob(
        60 * NS_PER_S,
        flag="grpc-failure-log-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Failures of one method, and headers of no UTF-8, are logged at most this often.",
    )
    stage_sample_interval: int = knob(
        16,
        flag="lookup-stage-sample-interval",
        kind=KnobKind.INTEGER,
        unit="lookups",
        minimum=1,
        maximum=1_000_000,
        help="One lookup in so many has its stages timed.",
    )
