"""Settings of the prefix index."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """How much the index holds, for how long, and how much work one slice does."""

    entries_max: int = knob(
        1_000_000,
        flag="max-entries",
        kind=KnobKind.INTEGER,
        unit="replica-block entries",
        minimum=0,
        help="Cap on held entries over all tenants; 0 means no cap.",
    )
    ttl_ns: int = knob(
        30 * 60 * NS_PER_S,
        flag="ttl",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=1,
        help="How long an entry or a statistics record lives without being reported again.",
    )
    sweep_interval_ns: int = knob(
        60 * NS_PER_S,
        flag="sweep-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=1_000_000,
        help="Pause between two sweeps for expired entries.",
    )
    clear_fence: bool = knob(
        True,
        flag="clear-fence",
        kind=KnobKind.BOOLEAN,
        help="Drop reports stamped before the replica's last ALL_CLEARED.",
    )
    lfu_halving_interval_ns: int = knob(
        0,
        flag="lfu-halving-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Halve LFU use counts this often; 0 means never.",
    )
    slice_blocks: int = knob(
        2_048,
        flag="slice-blocks",
        kind=KnobKind.INTEGER,
        unit="blocks",
        minimum=1,
        help="Blocks handled before long work gives the event loop back.",
    )
    stats_records_max: int = knob(
        100_000,
        flag="max-stats-records",
        kind=KnobKind.INTEGER,
        unit="records",
        minimum=1,
        help="Cap on statistics records; at the cap those of new replicas are dropped and counted.",
    )
    clear_fences_max: int = knob(
        100_000,
        flag="max-clear-fences",
        kind=KnobKind.INTEGER,
        unit="replicas",
        minimum=1,
        help="Cap on remembered ALL_CLEARED times; at the cap the oldest is forgotten.",
    )
    identifier_bytes_max: int = knob(
        4_096,
        flag="max-identifier-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=64,
        maximum=1_048_576,
        help="Longest tenant, model, replica, scheme, adapter or hash a report may carry; of "
        "statistics with a longer client version the version is dropped.",
    )
