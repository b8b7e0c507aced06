"""Settings of an engine producer: decoding, sequence, mapping, delivery and load."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeSettings:
    """What one payload of an engine may cost; engines are not trusted."""

    payload_bytes_max: int = knob(
        16 * 1024 * 1024,
        flag="max-payload-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=64,
        help="Largest event batch that is decoded; a larger one is dropped and counted.",
    )
    events_max: int = knob(
        65_536,
        flag="max-batch-events",
        kind=KnobKind.INTEGER,
        unit="events",
        minimum=1,
        help="Most events in one batch.",
    )
    hashes_max: int = knob(
        131_072,
        flag="max-event-hashes",
        kind=KnobKind.INTEGER,
        unit="blocks",
        minimum=1,
        help="Most block hashes in one event.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceSettings:
    """How gaps in an engine's stream are found and filled."""

    replay_attempts_max: int = knob(
        3,
        flag="replay-attempts",
        kind=KnobKind.INTEGER,
        unit="requests",
        minimum=1,
        help="Replay requests without progress before missing numbers are given up.",
    )
    replay_idle_ns: int = knob(
        2 * NS_PER_S,
        flag="replay-idle",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="A replay that stays silent this long counts as ended.",
    )
    replay_total_ns: int = knob(
        120 * NS_PER_S,
        flag="replay-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Longest time spent on filling one gap, over all attempts.",
    )
    reorder_batches_max: int = knob(
        20_000,
        flag="max-reorder-batches",
        kind=KnobKind.INTEGER,
        unit="batches",
        minimum=1,
        help="Batches kept while an earlier one is missing.",
    )
    reorder_bytes_max: int = knob(
        256 * 1024 * 1024,
        flag="max-reorder-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1,
        help="Payload bytes kept while an earlier batch is missing.",
    )
    gap_batches_max: int = knob(
        1 << 20,
        flag="max-gap",
        kind=KnobKind.INTEGER,
        unit="batches",
        minimum=1,
        help="A jump ahead by more numbers counts as a restart of the engine, not as lost batches.",
    )
    remembered_batches_max: int = knob(
        16_384,
        flag="max-remembered-batches",
        kind=KnobKind.INTEGER,
        unit="batches",
        minimum=1,
        help="Batches remembered by time and length, to tell a repeated one from a restart.",
    )
    clear_on_gap: bool = knob(
        False,
        flag="clear-on-gap",
        kind=KnobKind.BOOLEAN,
        help="Clear the replica when a gap cannot be filled; otherwise go on with what is known.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MapperSettings:
    """How engine blocks become keys of the index, and how many are remembered."""

    block_size_tokens: int = knob(
        16,
        flag="block-size",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=1,
        maximum=65_536,
        help="Block size of the index; must equal the server's.",
    )
    blocks_max: int = knob(
        2_000_000,
        flag="max-blocks",
        kind=KnobKind.INTEGER,
        unit="engine blocks",
        minimum=1,
        help="Engine blocks remembered per replica; beyond it the oldest are withdrawn.",
    )
    orphan_blocks_max: int = knob(
        65_536,
        flag="orphan-limit",
        kind=KnobKind.INTEGER,
        unit="engine blocks",
        minimum=0,
        help="Blocks held while their parent is unknown; beyond it the oldest are dropped.",
    )
    orphan_bytes_max: int = knob(
        256 * 1024 * 1024,
        flag="orphan-bytes-limit",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=0,
        help="Tokens and names of those blocks; beyond it the oldest are dropped.",
    )
    orphan_hold_ns: int = knob(
        30 * NS_PER_S,
        flag="orphan-hold",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="How long a block waits for its parent.",
    )
    copies_max: int = knob(
        64,
        flag="max-copies",
        kind=KnobKind.INTEGER,
        unit="copies",
        minimum=1,
        maximum=255,
        help="Copies of one block counted per medium; further stores do not count.",
    )
    infer_offload: bool = knob(
        False,
        flag="ignore-block-removed",
        kind=KnobKind.BOOLEAN,
        help="The engine offloads silently, so a block removed from the GPU becomes T2.",
    )
    offloaded_blocks_max: int = knob(
        500_000,
        flag="max-offloaded-blocks",
        kind=KnobKind.INTEGER,
        unit="engine blocks",
        minimum=0,
        help="Blocks assumed to be offloaded; beyond it the oldest are withdrawn.",
    )
    lora_name_from_event: bool = knob(
        False,
        flag="lora-name-from-event",
        kind=KnobKind.BOOLEAN,
        help="Use the adapter name an event carries when its id is not in the adapter map.",
    )
    lora_adapter_names: str = knob(
        "",
        flag="lora-adapter-names",
        kind=KnobKind.TEXT,
        help="Adapter ids of this engine and their names, for example 1=sql-lora,2=chat-lora.",
    )
    ranks_max: int = knob(
        1_024,
        flag="max-ranks",
        kind=KnobKind.INTEGER,
        unit="ranks",
        minimum=1,
        help="Data-parallel ranks tracked per engine.",
    )
    groups_max: int = knob(
        64,
        flag="max-groups",
        kind=KnobKind.INTEGER,
        unit="KV cache groups",
        minimum=1,
        help="KV cache groups tracked per rank; blocks of further ones are dropped.",
    )
    adapters_max: int = knob(
        1_024,
        flag="max-adapters",
        kind=KnobKind.INTEGER,
        unit="adapters",
        minimum=1,
        help="Adapters with blocks at a time, the base model included; blocks of further ones are "
        "dropped.",
    )
    clock_skew_max_ns: int = knob(
        60 * NS_PER_S,
        flag="max-clock-skew",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Distance between a live batch's time and ours that is counted as skew.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxSettings:
    """How changes are gathered before they are sent."""

    window_ns: int = knob(
        100 * NS_PER_MS,
        flag="window",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long changes are gathered before they are sent.",
    )
    pending_keys_max: int = knob(
        2_000_000,
        flag="max-pending-keys",
        kind=KnobKind.INTEGER,
        unit="keys",
        minimum=16_384,
        help="Unsent keys per server; beyond it they are dropped and the live set is sent again.",
    )
    update_blocks_max: int = knob(
        32_768,
        flag="max-update-blocks",
        kind=KnobKind.INTEGER,
        unit="blocks",
        minimum=1,
        maximum=100_000,
        help="Most blocks in one update message.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """How the engine's metrics page becomes a load signal."""

    engine_cache_size_bytes: int = knob(
        0,
        flag="engine-cache-size-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=0,
        help="Size of the engine's cache, multiplied by its usage; 0 reports no memory.",
    )
    concurrency_ceiling: int = knob(
        256,
        flag="max-concurrency-ceiling",
        kind=KnobKind.INTEGER,
        unit="requests",
        help="Running plus waiting requests that count as full pressure; 0 or less reports none.",
    )
    cache_tier: str = knob(
        "auto",
        flag="cache-tier",
        kind=KnobKind.TEXT,
        choices=("auto", "kv", "gpu", "cpu"),
        help="Which usage gauge of vLLM counts.",
    )
    engine_model_name: str = knob(
        "",
        flag="engine-model-name",
        kind=KnobKind.TEXT,
        help="Count only series whose model_name label equals this; empty counts all.",
    )
