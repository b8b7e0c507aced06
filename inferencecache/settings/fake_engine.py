"""Settings of ``inferencecache fake-engine``: what it pretends to be and to do."""

from dataclasses import dataclass, field

from inferencecache.clock import NS_PER_MS
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeEngineSettings:
    """The engine."""

    layout: str = knob(
        "vllm-0.33",
        flag="layout",
        kind=KnobKind.TEXT,
        help="Engine and release to imitate, for example vllm-0.25.1 or sglang-0.5.22.",
    )
    hash_form: str = knob(
        "auto",
        flag="hash-form",
        kind=KnobKind.TEXT,
        choices=("auto", "unsigned", "signed", "bytes8", "bytes16", "bytes32"),
        help="How block hashes are written; auto is the release's default.",
    )
    kv_events_config: str = knob(
        "",
        flag="kv-events-config",
        kind=KnobKind.TEXT,
        help="The engine's own JSON configuration, followed as the engine would: it decides "
        "whether, where and under which topic there are events. Wins over the next four.",
    )
    bind_endpoint: str = knob(
        "tcp://127.0.0.1:5557",
        flag="bind",
        kind=KnobKind.TEXT,
        help="Where events are published; port 0 takes a free one. Rank r uses port + r.",
    )
    replay_endpoint: str = knob(
        "tcp://127.0.0.1:5558",
        flag="replay-bind",
        kind=KnobKind.TEXT,
        help="Where replays are answered, likewise; empty for none.",
    )
    topic: str = knob(
        "kv-events",
        flag="topic",
        kind=KnobKind.TEXT,
        help="Topic of the events.",
    )
    buffer_steps: int = knob(
        10_000,
        flag="buffer-steps",
        kind=KnobKind.INTEGER,
        unit="messages",
        minimum=1,
        maximum=1_000_000,
        help="Messages kept for replay.",
    )
    has_end_mark: bool = knob(
        True,
        flag="replay-end-mark",
        kind=KnobKind.BOOLEAN,
        help="Whether a replay says that it is over.",
    )
    name: str = knob(
        "fake-engine",
        flag="engine-name",
        kind=KnobKind.TEXT,
        help="Who says that it answered a request.",
    )
    openai_address: str = knob(
        "",
        flag="openai-listen",
        kind=KnobKind.TEXT,
        help="Where requests are answered as engines answer them, HOST:PORT; empty for nowhere. "
        "Rank 0 computes them.",
    )
    prefill_tokens_per_s: int = knob(
        8_000,
        flag="prefill-rate",
        kind=KnobKind.INTEGER,
        unit="tokens per second",
        minimum=1,
        maximum=1_000_000_000,
        help="How fast prompts of requests are computed, one after the other; what is cached takes "
        "no time.",
    )
    base_ns: int = knob(
        50 * NS_PER_MS,
        flag="base-latency",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="From the end of a prompt's computation to the first token of the answer.",
    )
    decode_token_ns: int = knob(
        2 * NS_PER_MS,
        flag="token-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Between two tokens of an answer; a token is a byte.",
    )
    concurrency_max: int = knob(
        256,
        flag="max-requests",
        kind=KnobKind.INTEGER,
        unit="requests",
        minimum=1,
        maximum=100_000,
        help="Most requests that are computed or answered at a time; others wait.",
    )
    window_tokens: int = knob(
        131_072,
        flag="max-model-len",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=2,
        maximum=16_777_216,
        help="Most tokens of a request's prompt and answer together.",
    )
    metrics_address: str = knob(
        "127.0.0.1:8000",
        flag="metrics-listen",
        kind=KnobKind.ADDRESS,
        help="Where the metrics page is served.",
    )
    model_name: str = knob(
        "fake-model",
        flag="model-name",
        kind=KnobKind.TEXT,
        help="Label model_name on the metrics page.",
    )
    block_size_tokens: int = knob(
        16,
        flag="block-size",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=1,
        maximum=65_536,
        help="Tokens per engine block.",
    )
    index_block_size_tokens: int = knob(
        16,
        flag="index-block-size",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=1,
        maximum=65_536,
        help="Tokens per block of the index, for the EXPECT lines.",
    )
    cache_blocks: int = knob(
        4_096,
        flag="cache-blocks",
        kind=KnobKind.INTEGER,
        unit="engine blocks",
        minimum=1,
        maximum=10_000_000,
        help="Room in the cache of each rank; what no longer fits is evicted.",
    )
    ranks: int = knob(
        1,
        flag="dp-size",
        kind=KnobKind.INTEGER,
        unit="ranks",
        minimum=1,
        maximum=64,
        help="Data-parallel ranks, each with sockets of its own.",
    )
    groups: int = knob(
        1,
        flag="groups",
        kind=KnobKind.INTEGER,
        unit="KV groups",
        minimum=1,
        maximum=16,
        help="KV cache groups; all but the first serve a sliding window. Needs vllm-0.20 or later.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeTrafficSettings:
    """What the engine does when no script tells it."""

    prompts: int = knob(
        0,
        flag="prompts",
        kind=KnobKind.INTEGER,
        unit="prompts",
        minimum=0,
        help="Prompts to generate; 0 goes on until a signal, or generates none where requests are "
        "answered.",
    )
    interval_ns: int = knob(
        500 * NS_PER_MS,
        flag="interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Pause after each generated or traced prompt.",
    )
    seed: int = knob(
        0,
        flag="seed",
        kind=KnobKind.INTEGER,
        minimum=0,
        maximum=2**32 - 1,
        help="Seed of the generated prompts.",
    )
    families: int = knob(
        8,
        flag="families",
        kind=KnobKind.INTEGER,
        unit="prefixes",
        minimum=1,
        maximum=100_000,
        help="Different shared prefixes among the prompts.",
    )
    shared_blocks: int = knob(
        8,
        flag="shared-blocks",
        kind=KnobKind.INTEGER,
        unit="blocks",
        minimum=0,
        maximum=10_000,
        help="Length of a shared prefix, in blocks of the engine or of the index, whichever are "
        "larger.",
    )
    awaits_subscriber: bool = knob(
        False,
        flag="await-subscriber",
        kind=KnobKind.BOOLEAN,
        help="Begin only when every rank has a subscriber.",
    )
    stays: bool = knob(
        True,
        flag="stay",
        kind=KnobKind.BOOLEAN,
        help="Answer replays until a signal after the last step; otherwise end there.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeEngineCommandSettings:
    """The settings of the command, by group."""

    engine: FakeEngineSettings = field(default_factory=FakeEngineSettings)
    traffic: FakeTrafficSettings = field(default_factory=FakeTrafficSettings)
