"""Settings of ``inferencecache replay``: the simulated fleet and its gateway."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """How large the fleet is, how the gateway routes, and which names go over the wire."""

    server: str = knob(
        "",
        flag="server",
        kind=KnobKind.TEXT,
        help="HOST:PORT of a running server's gRPC; empty starts one for the replay.",
    )
    replicas: int = knob(
        8,
        flag="replicas",
        kind=KnobKind.INTEGER,
        unit="replicas",
        minimum=1,
        maximum=1_024,
        help="Simulated replicas.",
    )
    cache_blocks: int = knob(
        2_000,
        flag="cache-blocks",
        kind=KnobKind.INTEGER,
        unit="blocks of 512 tokens",
        minimum=1,
        maximum=10_000_000,
        help="Capacity of each replica's cache.",
    )
    requests_max: int = knob(
        0,
        flag="limit",
        kind=KnobKind.INTEGER,
        unit="requests",
        minimum=0,
        help="Replay only the first so many requests; 0 means all.",
    )
    seed: int = knob(
        0,
        flag="seed",
        kind=KnobKind.INTEGER,
        minimum=0,
        maximum=2**32 - 1,
        help="Seed of the turn order; the same seed gives the same table.",
    )
    speed: float = knob(
        0.0,
        flag="speed",
        kind=KnobKind.NUMBER,
        unit="times trace time",
        minimum=0,
        maximum=1_000_000,
        help="Play arrivals this many times faster than recorded; 0 means as fast as it goes.",
    )
    through_zmq: bool = knob(
        False,
        flag="through-zmq",
        kind=KnobKind.BOOLEAN,
        help="Report the whole way: each replica publishes events over ZMQ like an engine, and a "
        "producer follows them.",
    )
    engine_layout: str = knob(
        "vllm-0.33",
        flag="layout",
        kind=KnobKind.TEXT,
        help="Engine and release whose events are imitated with --through-zmq.",
    )
    tenant_id: str = knob(
        "replay",
        flag="tenant",
        kind=KnobKind.TEXT,
        help="Tenant that reports and lookups name.",
    )
    model_id: str = knob(
        "mooncake",
        flag="model",
        kind=KnobKind.TEXT,
        help="Model that reports and lookups name.",
    )
    match_share_min: float = knob(
        0.1,
        flag="min-match-share",
        kind=KnobKind.NUMBER,
        unit="ratio",
        minimum=0,
        maximum=1,
        help="Follow a match only if it covers this share of the prompt; 0 follows every one.",
    )
    overload_factor: float = knob(
        1.5,
        flag="overload-factor",
        kind=KnobKind.NUMBER,
        unit="ratio",
        minimum=0,
        maximum=1_000,
        help="Skip a hinted replica whose recent prompt tokens exceed the mean by this factor; "
        "0 never skips.",
    )
    load_window_requests: int = knob(
        256,
        flag="load-window",
        kind=KnobKind.INTEGER,
        unit="requests",
        minimum=1,
        help="How many requests back a replica's recent load reaches.",
    )
    connect_timeout_ns: int = knob(
        5 * NS_PER_S,
        flag="connect-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=1_000_000,
        help="How long to try the server at first; one that is just starting is waited for.",
    )
    deadline_ns: int = knob(
        30 * NS_PER_S,
        flag="deadline",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=1_000_000,
        help="Longest wait for one answer of the server.",
    )
    evictions_in_flight_max: int = knob(
        64,
        flag="evictions-in-flight",
        kind=KnobKind.INTEGER,
        unit="calls",
        minimum=1,
        help="Eviction events of one request on their way at a time.",
    )
    server_ttl_ns: int = knob(
        24 * 3_600 * NS_PER_S,
        flag="server-ttl",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=1_000_000,
        help="Entry TTL of the self-started server: engines report a block once, "
        "so it must outlive the replay.",
    )
