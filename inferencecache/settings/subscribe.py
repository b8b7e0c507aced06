"""Settings of ``inferencecache subscribe``: the engines listened to, and what is around them."""

from dataclasses import dataclass, field

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.client import ClientSettings
from inferencecache.settings.collector import CollectorSettings
from inferencecache.settings.delivery import DeliverySettings, ServerTlsSettings
from inferencecache.settings.ending import EndingSettings
from inferencecache.settings.knob import KnobKind, knob
from inferencecache.settings.logs import LogSettings
from inferencecache.settings.own_pages import OwnPageLimits
from inferencecache.settings.producer import (
    DecodeSettings,
    LoadSettings,
    MapperSettings,
    OutboxSettings,
    SequenceSettings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Where an engine publishes, and what it is called in the index."""

    endpoint: str = knob(
        "tcp://127.0.0.1:5557",
        flag="engine-endpoint",
        kind=KnobKind.TEXT,
        help="ZMQ endpoint at which data-parallel rank 0 of the engine publishes.",
    )
    replay_endpoint: str = knob(
        "",
        flag="replay-endpoint",
        kind=KnobKind.TEXT,
        help="ZMQ endpoint at which rank 0 of the engine replays past events; empty means none.",
    )
    topic: str = knob(
        "kv-events",
        flag="topic",
        kind=KnobKind.TEXT,
        help="Prefix of the topics listened to; empty means every topic.",
    )
    ranks_total: int = knob(
        1,
        flag="dp-size",
        kind=KnobKind.INTEGER,
        unit="ranks",
        minimum=1,
        maximum=1_024,
        help="Data-parallel ranks listened to; each has both ports one above the rank before.",
    )
    rank_first: int = knob(
        0,
        flag="dp-rank",
        kind=KnobKind.INTEGER,
        minimum=0,
        maximum=65_535,
        help="First of these ranks.",
    )
    separate_ranks: bool = knob(
        False,
        flag="separate-ranks",
        kind=KnobKind.BOOLEAN,
        help="Make every rank a replica of its own, named REPLICA/RANK.",
    )
    replica_id: str = knob(
        "",
        flag="replica-id",
        kind=KnobKind.TEXT,
        help="Name of the replica in the index, as gateways know it; required.",
    )
    model_id: str = knob(
        "",
        flag="model-id",
        kind=KnobKind.TEXT,
        help="Model in the index, as lookups name it; required.",
    )
    tenant_id: str = knob(
        "",
        flag="tenant-id",
        kind=KnobKind.TEXT,
        help="Tenant in the index; lookups of any other tenant never match.",
    )
    hash_scheme: str = knob(
        "vllm",
        flag="hash-scheme",
        kind=KnobKind.TEXT,
        help="Engine domain in the index; sglang also selects SGLang's metric names.",
    )
    metrics_url: str = knob(
        "http://127.0.0.1:8000/metrics",
        flag="engine-metrics-url",
        kind=KnobKind.TEXT,
        help="The engine's metrics page; empty means no load signal.",
    )
    stats_interval_ns: int = knob(
        10 * NS_PER_S,
        flag="stats-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=10 * NS_PER_MS,
        help="Pause between two looks at the engine's metrics page.",
    )
    silent_after_ns: int = knob(
        60 * NS_PER_S,
        flag="silent-after",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="An engine that serves requests and publishes nothing for this long is reported.",
    )
    receive_messages_max: int = knob(
        100_000,
        flag="receive-queue",
        kind=KnobKind.INTEGER,
        unit="messages",
        minimum=1,
        help="Messages of one rank queued by ZMQ before it drops some.",
    )
    vanished_after_ns: int = knob(
        60 * NS_PER_S,
        flag="engine-vanished-after",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=5 * NS_PER_S,
        maximum=86_400 * NS_PER_S,
        help="An engine whose host is gone without a word counts as disconnected after about this "
        "long.",
    )
    forgotten_after_ns: int = knob(
        1_800 * NS_PER_S,
        flag="engine-forgotten-after",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="What an engine held is told to no server that starts anew once the engine was "
        "disconnected for this long; best the TTL of servers, which have let it expire by then.",
    )
    failure_log_interval_ns: int = knob(
        60 * NS_PER_S,
        flag="failure-log-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Batches of one rank that raise an unexpected error are logged at most this often.",
    )
    start_over_interval_ns: int = knob(
        60 * NS_PER_S,
        flag="start-over-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="After such errors, everything is asked for again at most this often.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """Everything that may differ from engine to engine."""

    engine: EngineSettings = field(default_factory=EngineSettings)
    mapper: MapperSettings = field(default_factory=MapperSettings)
    sequence: SequenceSettings = field(default_factory=SequenceSettings)
    decode: DecodeSettings = field(default_factory=DecodeSettings)
    load: LoadSettings = field(default_factory=LoadSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPageSettings(OwnPageLimits):
    """Where the producer shows its own state."""

    bind_address: str = knob(
        ":8082",
        flag="metrics-listen",
        kind=KnobKind.ADDRESS,
        help="Where health, readiness and metrics of the producer are served over plain HTTP.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OnceSettings:
    """For a look at an engine instead of a life beside it."""

    is_once: bool = knob(
        False,
        flag="once",
        kind=KnobKind.BOOLEAN,
        help="End as soon as every engine's past is taken in and every server knows it.",
    )
    dump: bool = knob(
        False,
        flag="dump",
        kind=KnobKind.BOOLEAN,
        help="At the end, write what is held to standard output, one key a line: replica, "
        "adapter, key in hexadecimal, tier.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """What one producer can be told.

    Attributes:
        sources: The engines, at least one.
        outbox: How changes are gathered, for each server and replica.
        delivery: The servers, and how they are told.
        tls: What connections to servers are made with.
        client: The connection to each server.
        page: Health, readiness and metrics over HTTP; None for a producer without a listener.
    """

    sources: tuple[SourceSettings, ...]
    outbox: OutboxSettings = field(default_factory=OutboxSettings)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    tls: ServerTlsSettings = field(default_factory=ServerTlsSettings)
    client: ClientSettings = field(default_factory=ClientSettings)
    page: ProducerPageSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribeSettings:
    """The settings of the command, by group; the first five are those of one source."""

    engine: EngineSettings = field(default_factory=EngineSettings)
    mapper: MapperSettings = field(default_factory=MapperSettings)
    sequence: SequenceSettings = field(default_factory=SequenceSettings)
    decode: DecodeSettings = field(default_factory=DecodeSettings)
    load: LoadSettings = field(default_factory=LoadSettings)
    outbox: OutboxSettings = field(default_factory=OutboxSettings)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    tls: ServerTlsSettings = field(default_factory=ServerTlsSettings)
    page: ProducerPageSettings = field(default_factory=ProducerPageSettings)
    once: OnceSettings = field(default_factory=OnceSettings)
    collector: CollectorSettings = field(default_factory=CollectorSettings)
    ending: EndingSettings = field(default_factory=EndingSettings)
    logs: LogSettings = field(default_factory=LogSettings)

    def source(self) -> SourceSettings:
        """Return the one engine that these settings describe."""
        return SourceSettings(
            engine=self.engine,
            mapper=self.mapper,
            sequence=self.sequence,
            decode=self.decode,
            load=self.load,
        )

    def producer(self, sources: tuple[SourceSettings, ...]) -> ProducerSettings:
        """Return the settings of a producer of *sources*."""
        return ProducerSettings(
            sources=sources,
            outbox=self.outbox,
            delivery=self.delivery,
            tls=self.tls,
            page=self.page,
        )
