"""What an engine says about its cache, after decoding; the names are the engines' own.

These are structs rather than dataclasses because some engines send one event per block, and a
struct is built in a fifth of the time. They are values: nothing changes one after decoding. They
hold numbers and texts only, so the garbage collector need not look at them.
"""

import msgspec


class BlockStored(msgspec.Struct, frozen=True, gc=False):
    """Blocks became available for reuse.

    Attributes:
        block_hashes: The engine's labels of the blocks in chain order, each modulo 2**64.
        parent_block_hash: Label of the block before the first; None at a prompt's start.
        packed_tokens: Tokens of all blocks, see ``token_packing``; empty when the engine only
            moves known blocks.
        block_size: Tokens per block; 0 only without tokens.
        opaque_from: Position of the first block whose content the tokens do not describe;
            ``len(block_hashes)`` when they describe all.
        lora_id: The engine's adapter number, None for the base model.
        lora_name: The adapter's name, empty if not sent.
        medium: Where the blocks lie, as sent; empty means GPU.
        group_idx: KV cache group; 0 when the engine does not name one.
        kv_cache_spec_kind: What kind of attention the group serves, empty if not sent.
        is_remote: The blocks lie in a shared store, which is no proof that this replica has them.
    """

    block_hashes: list[int]
    parent_block_hash: int | None
    packed_tokens: bytes
    block_size: int
    opaque_from: int
    lora_id: int | None = None
    lora_name: str = ""
    medium: str = ""
    group_idx: int = 0
    kv_cache_spec_kind: str = ""
    is_remote: bool = False


class BlockRemoved(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One copy of each block is gone from a medium; attributes as in :class:`BlockStored`."""

    block_hashes: list[int]
    medium: str = ""
    group_idx: int = 0
    is_remote: bool = False


class AllBlocksCleared(msgspec.Struct, frozen=True):
    """The publisher's whole cache is empty."""


Event = BlockStored | BlockRemoved | AllBlocksCleared


class EventBatch(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a publisher.

    Attributes:
        timestamp_ns: The engine's clock when it published, Unix nanoseconds; 0 if unusable.
        rank: Data-parallel rank, None if not sent.
        events: What could be decoded, in order.
        faults: What could not, by cause. Causes are a closed vocabulary, fit for metric labels.
        may_hide_removals: Something among the faults may have removed blocks.
        is_rest: An earlier slice of the same message came before.
        begun_events: Leading events of which an earlier slice had the beginning, 0 or 1.
    """

    timestamp_ns: int
    rank: int | None
    events: list[Event]
    faults: dict[str, int]
    may_hide_removals: bool = False
    is_rest: bool = False
    begun_events: int = 0
