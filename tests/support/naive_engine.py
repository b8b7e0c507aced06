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
RING = 40

Name = tuple[str, int]


@dataclass
class EngineBlock:
    """One block: all tokens up to its end, and its copies per medium."""

    tokens: tuple[int, ...]
    parent: int | None
    lora_id: int | None
    is_opaque: bool
    copies: dict[str, int] = field(default_factory=dict)


class NaiveEngine:
    """An engine of one life after another; hashes differ between lives."""

    def __init__(self, block_size: int, *, uses_maps: bool) -> None:
        self.block_size = block_size
        self.uses_maps = uses_maps
        self.announced: set[Name] = set()
        self.life = 0
        self.seconds = 1_000.0
        self._begin()

    def _begin(self) -> None:
        self.blocks: dict[int, EngineBlock] = {}
        self.number = 0
        self.ring: list[tuple[int, bytes]] = []

    def restart(self) -> None:
        """Lose everything and count from 0 again."""
        self.life += 1
        self._begin()

    def hash_of(self, tokens: tuple[int, ...], lora_id: int | None, *, is_opaque: bool) -> int:
        """Return this life's label of the block that ends *tokens*."""
        return hash((self.life, tokens, lora_id, is_opaque)) % 2**64

    def store(
        self, tokens: tuple[int, ...], lora_id: int | None, *, is_salted: bool
    ) -> bytes | None:
        """Cache a prompt; return the event for what was not cached yet, None if all was."""
        size, fresh, parent = self.block_size, [], None
        for end in range(size, len(tokens) + 1, size):
            name = self.hash_of(tokens[:end], lora_id, is_opaque=is_salted)
            if name in self.blocks and not fresh and "GPU" in self.blocks[name].copies:
                parent = name
                continue
            fresh.append((name, end))
        if not fresh:
            return None
        before = parent
        for name, end in fresh:
            known = self.blocks.setdefault(
                name, EngineBlock(tokens[:end], before, lora_id, is_salted)
            )
            known.copies["GPU"] = known.copies.get("GPU", 0) + 1
            before = name
        self._note_announced()
        start = fresh[0][1] - size
        is_first_salted = is_salted and parent is None
        return self._stored(
            [name for name, _ in fresh], parent, tokens[start:], lora_id, is_first_salted
        )

    def _stored(
        self,
        names: list[int],
        parent: int | None,
        tokens: tuple[int, ...],
        lora_id: int | None,
        is_salted: bool,  # noqa: FBT001 - a model stays short
    ) -> bytes:
        lora = NIL if lora_id is None else integer(lora_id)
        size = self.block_size
        keys = [array([text("salt")]) if is_salted else NIL] + [NIL] * (len(names) - 1)
        if self.uses_maps:
            return map_store(
                names, list(tokens), parent=parent, size=size, lora_id=lora, extra_keys=array(keys)
            )
        tail = {5: lora, 8: array(keys)}
        return array_store(12, names, list(tokens), parent=parent, size=size, tail=tail)

    def add_copy(self, name: int) -> bytes:
        """Compute a held block once more in another place."""
        block = self.blocks[name]
        block.copies["GPU"] = block.copies.get("GPU", 0) + 1
        own = block.tokens[-self.block_size :]
        is_salted = block.is_opaque and block.parent is None
        return self._stored([name], block.parent, own, block.lora_id, is_salted)

    def offload(self, name: int) -> bytes:
        """Copy a held block to the host; announced without tokens."""
        copies = self.blocks[name].copies
        copies["CPU"] = copies.get("CPU", 0) + 1
        if self.uses_maps:
            return map_store([name], [], size=0, medium=text("CPU"))
        return array_store(12, [name], [], size=0, tail={6: text("CPU")})

    def remove(self, name: int, medium: str) -> bytes:
        """Drop one copy of a block."""
        block = self.blocks[name]
        block.copies[medium] -= 1
        if not block.copies[medium]:
            del block.copies[medium]
        if not block.copies:
            del self.blocks[name]
        if self.uses_maps:
            return map_remove([name], medium=medium)
        return array_remove([name], width=3, medium=medium)

    def clear(self) -> bytes:
        """Drop everything."""
        self.blocks = {}
        return map_clear() if self.uses_maps else array_clear()

    def remove_nothing(self) -> bytes:
        """Return a removal of a block that nobody holds: a sign of life."""
        return map_remove([1]) if self.uses_maps else array_remove([1])

    def leaves(self) -> list[int]:
        """Return blocks that no held block continues, oldest first: what an LRU evicts."""
        parents = {block.parent for block in self.blocks.values()}
        return [name for name in self.blocks if name not in parents]

    def publish(self, *events: bytes, is_burnt: bool = False) -> tuple[int, bytes]:
        """Number a message; a burnt one never reaches the ring."""
        self.seconds += 1.0
        message = (self.number, batch(*events, ts=self.seconds))
        self.number += 1
        if not is_burnt:
            self.ring = [*self.ring, message][-RING:]
        return message

    def truth(self) -> dict[Name, CacheTier]:
        """Return every key the engine can serve now, with its tier."""
        held: dict[Name, CacheTier] = {}
        for block in self.blocks.values():
            if block.is_opaque:
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

    def _note_announced(self) -> None:
        self.announced |= set(self.truth())
