"""The blocks of one simulated engine rank, what it says about them, and what must follow from it.

Rules of this file
    1. Only full blocks are cached, and a prompt never evicts its own blocks.
    2. Victims are the least recently used blocks, the deepest of a prompt first.
    3. What an index must hold is worked out from tokens and copies alone, never from events.

Theory of operation
    A block's label chains over its tokens from a seed of its own for every life, adapter and salt,
    so labels differ between lives while the index's keys do not. With room for 3 blocks::

        serve a b c      BlockStored a b c (parent nil)
        serve a b d      BlockRemoved c; BlockStored d (parent b)

    A key of the index is due while every engine block under it is held: one block where engine
    blocks are as large as the index's or larger, several pages where they are smaller.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from inferencecache.fingerprint import content_hashes, prefix_hashes
from inferencecache.simulation.engine_event import EngineEvent, RemovedBlocks, StoredBlocks
from inferencecache.simulation.event_payload import CLEARED
from inferencecache.types import CacheTier

GPU: Final = "GPU"
_WINDOW_KIND: Final = "sliding_window"


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeRules:
    """What does not change while an engine lives.

    Attributes:
        block_size_tokens: Tokens per engine block.
        index_block_size_tokens: Tokens per block of the index.
        cache_blocks: Room on the GPU, in engine blocks.
        groups: KV cache groups that are announced; the first serves whole prefixes.
        moves_carry_tokens: Whether a copy to another tier is announced with its tokens.
    """

    block_size_tokens: int = 16
    index_block_size_tokens: int = 16
    cache_blocks: int = 4_096
    groups: int = 1
    moves_carry_tokens: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePrompt:
    """One prompt as an engine sees it.

    Attributes:
        tokens: Its token ids.
        lora_id: Number of its adapter, or None.
        lora_name: Name of its adapter, or empty.
        salt: Keeps it apart from equal prompts, or empty.
    """

    tokens: Sequence[int]
    lora_id: int | None = None
    lora_name: str = ""
    salt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedKey:
    """One key the index must hold.

    Attributes:
        adapter_id: Its partition; empty for the base model.
        key: The prefix hash, 0 to 2**64 - 1.
        token_count: Tokens from the prompt's start to the end of its block.
        tier: Where the block lies.
    """

    adapter_id: str
    key: int
    token_count: int
    tier: CacheTier


@dataclass(slots=True, kw_only=True)
class _Block:
    """One engine block: the keys that end in it, the pages they need, its copies per medium."""

    adapter_id: str
    keys: tuple[tuple[int, int], ...]
    pages: tuple[int, ...]
    is_salted: bool
    copies: Counter[str] = field(default_factory=Counter)


class EngineLife:
    """One rank's cache.

    Args:
        rules: Sizes.
        rank: Data-parallel rank; labels differ between ranks.

    Attributes:
        hit_tokens: Prompt tokens found cached since the start.
        query_tokens: Prompt tokens looked up since the start.
    """

    def __init__(self, rules: LifeRules, rank: int = 0) -> None:
        self._rules = rules
        self._rank = rank
        self._life = 0
        self._blocks: dict[int, _Block] = {}
        self._recency: OrderedDict[int, None] = OrderedDict()
        self.hit_tokens = 0
        self.query_tokens = 0

    @property
    def usage_ratio(self) -> float:
        """Used share of the GPU's blocks, 0 to 1."""
        return len(self._recency) / self._rules.cache_blocks

    def labels(self, prompt: EnginePrompt) -> list[int]:
        """Return the names of the prompt's full blocks in this life."""
        identity = [self._rank, self._life, (prompt.lora_id or 0) + 1, *prompt.salt.encode()]
        seed = content_hashes(identity, len(identity))[0]
        return prefix_hashes(prompt.tokens, self._rules.block_size_tokens, seed)

    def matched_tokens(self, prompt: EnginePrompt) -> int:
        """Return how many leading tokens need not be computed, without using their blocks.

        The last token is always computed, and its block with it.
        """
        size = self._rules.block_size_tokens
        usable = min((len(prompt.tokens) - 1) // size, self._rules.cache_blocks)
        labels = self.labels(prompt)[:usable]
        return size * len(list(takewhile(self._is_on_gpu, labels)))

    def serve(self, prompt: EnginePrompt) -> list[EngineEvent]:
        """Compute a prompt: use what is cached, make room, store the rest.

        Returns:
            What is announced: removals first, one per block, then the store; a hit says nothing.
        """
        labels = self.labels(prompt)[: self._rules.cache_blocks]
        hits = len(list(takewhile(self._is_on_gpu, labels)))
        self.query_tokens += len(prompt.tokens)
        self.hit_tokens += hits * self._rules.block_size_tokens
        for label in reversed(labels[:hits]):
            self._recency.move_to_end(label)
        fresh = [label for label in labels[hits:] if label not in self._recency]
        events = self.evict(
            max(0, len(self._recency) + len(fresh) - self._rules.cache_blocks), spare=set(labels)
        )
        if labels[hits:]:
            events += self._store(prompt, labels, hits)
        for label in reversed(labels):
            self._recency[label] = None
            self._recency.move_to_end(label)
        return events

    def copy(self, prompt: EnginePrompt) -> list[EngineEvent]:
        """Compute the held blocks of a prompt once more beside the copies there are."""
        labels = list(takewhile(self._is_on_gpu, self.labels(prompt)))
        return self._store(prompt, labels, 0) if labels else []

    def evict(self, blocks: int, spare: set[int] | None = None) -> list[EngineEvent]:
        """Drop the least recently used blocks from the GPU with all their copies.

        Args:
            blocks: How many, at most as many as there are.
            spare: Labels that must stay.
        """
        kept = spare or set()
        victims = [label for label in self._recency if label not in kept][:blocks]
        return [event for label in victims for event in self._drop_all(label)]

    def remove(self, prompt: EnginePrompt, medium: str, first_block: int) -> list[EngineEvent]:
        """Drop one copy of each of a prompt's blocks, the deepest first.

        Args:
            prompt: Whose blocks.
            medium: From where.
            first_block: Blocks before this one stay.
        """
        events: list[EngineEvent] = []
        for label in reversed(self.labels(prompt)[first_block:]):
            block = self._blocks.get(label)
            if block is not None and block.copies[medium]:
                events += self._drop(label, medium)
        return events

    def offload(self, prompt: EnginePrompt, medium: str) -> list[EngineEvent]:
        """Copy the held blocks of a prompt to another medium."""
        labels = list(takewhile(self._blocks.__contains__, self.labels(prompt)))
        for label in labels:
            self._blocks[label].copies[medium] += 1
        if not labels:
            return []
        if self._rules.moves_carry_tokens:
            return self._announced(prompt, labels, 0, medium)
        move = StoredBlocks(
            labels=labels, parent=None, tokens=(), block_size_tokens=0, medium=medium
        )
        return [move]

    def clear(self) -> list[EngineEvent]:
        """Drop everything and say so."""
        self._forget()
        return [CLEARED]

    def restart(self) -> None:
        """Begin another life: nothing is held, and the same prompts get other labels."""
        self._forget()
        self._life += 1
        self.hit_tokens = self.query_tokens = 0

    def expected(self) -> Iterator[ExpectedKey]:
        """Yield the keys that follow from what is held now."""
        for label, block in self._blocks.items():
            if block.is_salted or not all(page in self._blocks for page in block.pages):
                continue
            tier = CacheTier.T1 if self._is_on_gpu(label) else CacheTier.T2
            for key, token_count in block.keys:
                yield ExpectedKey(
                    adapter_id=block.adapter_id, key=key, token_count=token_count, tier=tier
                )

    def _forget(self) -> None:
        self._blocks.clear()
        self._recency.clear()

    def _is_on_gpu(self, label: int) -> bool:
        block = self._blocks.get(label)
        return block is not None and block.copies[GPU] > 0

    def _store(self, prompt: EnginePrompt, labels: list[int], first: int) -> list[EngineEvent]:
        """Add a copy of the blocks from *first* on."""
        keys = prefix_hashes(prompt.tokens, self._rules.index_block_size_tokens)
        for position in range(first, len(labels)):
            block = self._blocks.get(labels[position])
            if block is None:
                block = self._block(prompt, labels, position, keys)
                self._blocks[labels[position]] = block
            block.copies[GPU] += 1
        return self._announced(prompt, labels, first, GPU)

    def _block(
        self, prompt: EnginePrompt, labels: list[int], position: int, keys: list[int]
    ) -> _Block:
        size, index_size = self._rules.block_size_tokens, self._rules.index_block_size_tokens
        start, end = position * size, (position + 1) * size
        is_usable = size % index_size == 0 or index_size % size == 0
        first_key, last_key = start // index_size, end // index_size
        own = range(first_key, last_key) if is_usable else range(0)
        first_page = first_key * index_size // size
        return _Block(
            adapter_id=prompt.lora_name,
            keys=tuple((keys[number], (number + 1) * index_size) for number in own),
            pages=tuple(labels[first_page:position]) if own else (),
            is_salted=bool(prompt.salt),
        )

    def _announced(
        self, prompt: EnginePrompt, labels: list[int], first: int, medium: str
    ) -> list[EngineEvent]:
        """Return the store of ``labels[first:]``, once per group."""
        size = self._rules.block_size_tokens
        return [
            StoredBlocks(
                labels=labels[first:],
                parent=labels[first - 1] if first else None,
                tokens=prompt.tokens[first * size : len(labels) * size],
                block_size_tokens=size,
                medium=medium,
                lora_id=prompt.lora_id,
                lora_name=prompt.lora_name,
                salt=prompt.salt,
                group=group,
                kind=_WINDOW_KIND if group else "full_attention",
            )
            for group in range(self._rules.groups)
        ]

    def _drop_all(self, label: int) -> list[EngineEvent]:
        copies = self._blocks[label].copies[GPU]
        return [event for _ in range(copies) for event in self._drop(label, GPU)]

    def _drop(self, label: int, medium: str) -> list[EngineEvent]:
        """Take one copy away; the block goes with its last."""
        block = self._blocks[label]
        block.copies[medium] -= 1
        if not block.copies[medium]:
            del block.copies[medium]
            if medium == GPU:
                self._recency.pop(label, None)
        if not block.copies:
            del self._blocks[label]
        groups = range(self._rules.groups) if medium == GPU else range(1)
        return [RemovedBlocks(labels=[label], medium=medium, group=group) for group in groups]
