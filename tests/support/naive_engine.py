"""What an engine holds and publishes, kept as simply as possible."""

from dataclasses import dataclass, field

from engine_payloads import (
    array_clear,
    array_remove,
    array_store,
    batch,
    map_clear,
    map_remove,
    map_store,
)
from msgpack_bytes import NIL, array, integer, text

from inferencecache.fingerprint import prefix_hashes
from inferencecache.types import CacheTier

INDEX_SIZE = 16
ADAPTERS = {None: "", 1: "sql"}
WINDOW_GROUP = 1
"""The group whose blocks are no prompt's leading part; 0 and 2 serve whole prefixes."""


Name = tuple[str, int]


Label = tuple[int, int]
"""KV group and engine hash."""


@dataclass
class EngineBlock:
    """One block: all tokens up to its end, and its copies per medium."""

    tokens: tuple[int, ...]
    parent: Label | None
    lora_id: int | None
    is_opaque: bool
    copies: dict[str, int] = field(default_factory=dict)


class NaiveEngine:
    """An engine of one life after another; hashes differ between lives, not between groups."""

    def __init__(self, block_size: int, *, uses_maps: bool, ring_size: int = 100) -> None:
        self.block_size = block_size
        self.ring_size = ring_size
        self.uses_maps = uses_maps
        self.announced: set[Name] = set()
        self.life = 0
        self.seconds = 1_000.0
        self._begin()

    def _begin(self) -> None:
        self.blocks: dict[Label, EngineBlock] = {}
        self.number = 0
        self.ring: list[tuple[int, bytes]] = []

    def restart(self) -> None:
        """Lose everything and count from 0 again."""
        self.life += 1
        self._begin()

    def store(
        self, tokens: tuple[int, ...], lora_id: int | None, group: int, *, is_salted: bool
    ) -> bytes | None:
        """Cache a prompt; return the event for what was not cached yet, None if all was."""
        size, parent = self.block_size, None
        fresh: list[tuple[Label, int]] = []
        for end in range(size, len(tokens) + 1, size):
            label = (group, hash((self.life, tokens[:end], lora_id, is_salted)) % 2**64)
            if label in self.blocks and not fresh and "GPU" in self.blocks[label].copies:
                parent = label
                continue
            fresh.append((label, end))
        if not fresh:
            return None
        before = parent
        for label, end in fresh:
            block = EngineBlock(tokens[:end], before, lora_id, is_salted)
            copies = self.blocks.setdefault(label, block).copies
            copies["GPU"] = copies.get("GPU", 0) + 1
            before = label
        self.announced |= set(self.truth())
        own = tokens[fresh[0][1] - size :]
        return self._stored([label for label, _ in fresh], own)

    def _stored(self, labels: list[Label], tokens: tuple[int, ...]) -> bytes:
        group, block = labels[0][0], self.blocks[labels[0]]
        hashes, size = [engine_hash for _, engine_hash in labels], self.block_size
        parent = None if block.parent is None else block.parent[1]
        lora = NIL if block.lora_id is None else integer(block.lora_id)
        salt = array([text("salt")]) if block.is_opaque and parent is None else NIL
        keys = array([salt] + [NIL] * (len(hashes) - 1))
        kind = text("sliding_window" if group == WINDOW_GROUP else "full_attention")
        if self.uses_maps:
            more = {"lora_id": lora, "extra_keys": keys, "group_idx": integer(group)}
            more["kv_cache_spec_kind"] = kind
            return map_store(hashes, list(tokens), parent=parent, size=size, **more)
        tail = {5: lora, 8: keys, 9: integer(group), 10: kind}
        return array_store(12, hashes, list(tokens), parent=parent, size=size, tail=tail)

    def add_copy(self, label: Label) -> bytes:
        """Compute a held block once more in another place."""
        block = self.blocks[label]
        block.copies["GPU"] = block.copies.get("GPU", 0) + 1
        return self._stored([label], block.tokens[-self.block_size :])

    def offload(self, label: Label) -> bytes:
        """Copy a held block to the host; announced without tokens."""
        copies = self.blocks[label].copies
        copies["CPU"] = copies.get("CPU", 0) + 1
        group, hashes = integer(label[0]), [label[1]]
        if self.uses_maps:
            return map_store(hashes, [], size=0, medium=text("CPU"), group_idx=group)
        return array_store(12, hashes, [], size=0, tail={6: text("CPU"), 9: group})

    def remove(self, label: Label, medium: str) -> bytes:
        """Drop one copy of a block."""
        block = self.blocks[label]
        block.copies[medium] -= 1
        if not block.copies[medium]:
            del block.copies[medium]
        if not block.copies:
            del self.blocks[label]
        if self.uses_maps:
            return map_remove([label[1]], medium=medium, group_idx=integer(label[0]))
        return array_remove([label[1]], width=4, medium=medium, group_idx=label[0])

    def remove_unreadably(self, label: Label, medium: str) -> bytes:
        """Drop one copy of a block, and say so in a way that nobody can read."""
        self.remove(label, medium)
        if self.uses_maps:
            return map_remove([label[1]], medium=medium, group_idx=integer(-1))
        return array_remove([label[1]], width=4, medium=medium, group_idx=-1)

    def clear(self) -> bytes:
        """Drop everything."""
        self.blocks = {}
        return map_clear() if self.uses_maps else array_clear()

    def remove_nothing(self) -> bytes:
        """Return a removal of a block that nobody holds: a sign of life."""
        return map_remove([1]) if self.uses_maps else array_remove([1])

    def leaves(self) -> list[Label]:
        """Return blocks that no held block continues, oldest first: what an LRU evicts."""
        parents = {block.parent for block in self.blocks.values()}
        return [label for label in self.blocks if label not in parents]

    def publish(self, *events: bytes, is_burnt: bool = False) -> tuple[int, bytes]:
        """Number a message; a burnt one never reaches the ring."""
        self.seconds += 1.0
        message = (self.number, batch(*events, ts=self.seconds))
        self.number += 1
        if not is_burnt:
            self.ring = [*self.ring, message][-self.ring_size :]
        return message

    def truth(self) -> dict[Name, CacheTier]:
        """Return every key the engine can serve now, with its tier."""
        held: dict[Name, CacheTier] = {}
        for (group, _), block in self.blocks.items():
            if block.is_opaque or group == WINDOW_GROUP:
                continue
            tier = CacheTier.T1 if "GPU" in block.copies else CacheTier.T2
            for name in self._keys(block):
                held[name] = min(tier, held.get(name, tier))
        return held

    def _keys(self, block: EngineBlock) -> list[Name]:
        adapter_id = ADAPTERS[block.lora_id]
        before = (len(block.tokens) - self.block_size) // INDEX_SIZE
        own = prefix_hashes(block.tokens, INDEX_SIZE)[before:]
        return [(adapter_id, key) for key in own]
