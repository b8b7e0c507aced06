"""Settings of ``inferencecache doctor``: which engine is looked at, and how patiently."""

from dataclasses import dataclass, field

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob
from inferencecache.settings.producer import DecodeSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorSettings:
    """The engine, and what is expected of it."""

    engine_endpoint: str = knob(
        "",
        flag="engine",
        kind=KnobKind.TEXT,
        help="ZMQ endpoint at which rank 0 of the engine publishes, for example "
        "tcp://10.0.0.7:5557; required.",
    )
    replay_endpoint: str = knob(
        "",
        flag="replay-endpoint",
        kind=KnobKind.TEXT,
        help="ZMQ endpoint at which rank 0 replays past events; empty skips the check.",
    )
    topic: str = knob(
        "kv-events",
        flag="topic",
        kind=KnobKind.TEXT,
        help="Topic prefix that the subscriber listens to; empty means every topic.",
    )
    metrics_url: str = knob(
        "",
        flag="engine-metrics-url",
        kind=KnobKind.TEXT,
        help="The engine's metrics page, for example http://10.0.0.7:8000/metrics; "
        "empty skips the check.",
    )
    hash_scheme: str = knob(
        "vllm",
        flag="hash-scheme",
        kind=KnobKind.TEXT,
        help="Engine domain in the index; sglang also selects SGLang's metric names.",
    )
    server: str = knob(
        "",
        flag="server",
        kind=KnobKind.TEXT,
        help="HOST:PORT of a server's gRPC: look up there what the engine holds, as a gateway "
        "would; empty skips the check.",
    )
    tenant_id: str = knob(
        "",
        flag="tenant-id",
        kind=KnobKind.TEXT,
        help="Tenant of that lookup.",
    )
    model_id: str = knob(
        "",
        flag="model-id",
        kind=KnobKind.TEXT,
        help="Model of that lookup.",
    )
    block_size_tokens: int = knob(
        16,
        flag="block-size",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=1,
        maximum=65_536,
        help="Block size of the index: the server's --engine-block-size.",
    )
    ranks: int = knob(
        1,
        flag="dp-size",
        kind=KnobKind.INTEGER,
        unit="ranks",
        minimum=1,
        maximum=1_024,
        help="Data-parallel ranks that should listen, each one port above the rank before.",
    )
    listen_ns: int = knob(
        10 * NS_PER_S,
        flag="listen",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=10 * NS_PER_MS,
        help="How long to wait for an event; ends early when a store was seen.",
    )
    timeout_ns: int = knob(
        5 * NS_PER_S,
        flag="timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=10 * NS_PER_MS,
        help="Longest wait for a connection, a page, or the next message of a replay.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOutputSettings:
    """How findings are shown."""

    form: str = knob(
        "human",
        flag="output",
        kind=KnobKind.TEXT,
        choices=("human", "table", "json"),
        help="Form of the findings.",
    )
    no_color: bool = knob(
        False,
        flag="no-color",
        kind=KnobKind.BOOLEAN,
        help="Never colour the findings; they are coloured on terminals only.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCommandSettings:
    """The settings of the command, by group."""

    doctor: DoctorSettings = field(default_factory=DoctorSettings)
    output: DoctorOutputSettings = field(default_factory=DoctorOutputSettings)
    decode: DecodeSettings = field(default_factory=DecodeSettings)
