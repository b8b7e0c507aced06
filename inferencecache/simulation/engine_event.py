"""What a simulated engine says happened to its blocks, before any layout."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlocks:
    """Blocks of one chain were cached.

    Attributes:
        labels: The engine's names of the blocks, 0 to 2**64 - 1, in chain order.
        parent: Name of the block before the first; None at a prompt's start.
        tokens: Their tokens; empty when an offload tier only names known blocks.
        block_size_tokens: Tokens per block.
        medium: Where they lie.
        lora_id: The engine's adapter number; None for the base model.
        lora_name: The adapter's name, or empty.
        salt: What separates the prompt from equal ones, or empty; counts for the first block.
        group: KV cache group.
        kind: What kind of attention the group serves.
    """

    labels: Sequence[int]
    parent: int | None
    tokens: Sequence[int]
    block_size_tokens: int
    medium: str = "GPU"
    lora_id: int | None = None
    lora_name: str = ""
    salt: str = ""
    group: int = 0
    kind: str = "full_attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedBlocks:
    """One copy of each block is gone; attributes as in :class:`StoredBlocks`."""

    labels: Sequence[int]
    medium: str = "GPU"
    group: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearedBlocks:
    """The whole cache is empty."""


EngineEvent = StoredBlocks | RemovedBlocks | ClearedBlocks
