"""Remembers which blocks prompts had: agents send the same ones again and again."""

from collections import OrderedDict
from typing import Final

from inferencecache.picker.prompt.blocks import PromptBlocks

_ENTRY_BYTES: Final = 400
"""Of a name, its blocks' object and their places in the table, beside the hashes."""


class BlockMemory:
    """Blocks by the name of their prompt; those unused for longest go first.

    Args:
        bytes_max: Most bytes of all; 0 remembers nothing.

    Attributes:
        used_bytes: Of all entries.
    """

    __slots__ = ("_blocks", "_bytes_max", "used_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._blocks: OrderedDict[bytes, PromptBlocks] = OrderedDict()
        self.used_bytes = 0

    def __len__(self) -> int:
        return len(self._blocks)

    def find(self, name: bytes) -> PromptBlocks | None:
        """Return the blocks of the prompt called *name*."""
        blocks = self._blocks.get(name)
        if blocks is not None:
            self._blocks.move_to_end(name)
        return blocks

    def keep(self, name: bytes, blocks: PromptBlocks) -> None:
        """Remember *blocks* for as long as there is room."""
        self.forget(name)
        self._blocks[name] = blocks
        self.used_bytes += _size(blocks)
        while self.used_bytes > self._bytes_max:
            _, oldest = self._blocks.popitem(last=False)
            self.used_bytes -= _size(oldest)

    def forget(self, name: bytes) -> None:
        """Remember no blocks under *name*."""
        known = self._blocks.pop(name, None)
        if known is not None:
            self.used_bytes -= _size(known)


def _size(blocks: PromptBlocks) -> int:
    return len(blocks.hashes) + _ENTRY_BYTES
