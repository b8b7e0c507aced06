"""Blocks as engines usually store them, many in one object.

Most blocks are not looked at one by one: a prompt is stored, and nothing is asked of it until its
last block is continued or the engine evicts it. So a store of plain blocks is remembered as a
whole, and a block of it is made when somebody asks for it.
"""

from typing import final

import msgspec

from inferencecache.events.blocks import Block
from inferencecache.events.mediums import GPU_LANE, one_copy
from inferencecache.events.stretch import Stretch

_LONE_HOLDING = one_copy(GPU_LANE)


@final
class PlainRun(msgspec.Struct, gc=False):
    """Blocks that each are one index block with one copy on the GPU, and continue one another.

    Values are tuples, since the garbage collector does not walk through tuples of numbers.

    Attributes:
        stretch: Where they all stand in their group's order.
        engine_hashes: Their labels; those of blocks that have gone or changed stay.
        keys: The index key of each.
        parent_chain: Prefix hash before the first; None at a prompt's start.
        tokens: Tokens from the prompt's start to the first block's start.
        block_size: Tokens per block.
        taken: Blocks that are kept on their own, or not at all any more.
    """

    stretch: Stretch
    engine_hashes: tuple[int, ...]
    keys: tuple[int, ...]
    parent_chain: int | None
    tokens: int
    block_size: int
    taken: int = 0

    @property
    def is_worn(self) -> bool:
        """Whether more than half of the blocks were taken, so that it is not worth its memory."""
        return 2 * self.taken > len(self.keys)

    def take(self, engine_hash: int) -> Block:
        """Return a block, to be kept on its own from now on.

        Complexity:
            Constant for one after the other from either end, which is how engines evict prompts;
            else linear in the run, which is no longer than a stretch.
        """
        hashes, taken = self.engine_hashes, self.taken
        self.taken += 1
        if hashes[-1 - taken] == engine_hash:
            return self.block(len(hashes) - 1 - taken)
        return self.block(self.position(engine_hash, taken))

    def position(self, engine_hash: int, guess: int = 0) -> int:
        """Return where a block is in the run; it is.

        Args:
            engine_hash: Its label.
            guess: Where it may be, >= 0.

        Complexity:
            Constant if the guess is right, else linear in the run.
        """
        hashes = self.engine_hashes
        if guess < len(hashes) and hashes[guess] == engine_hash:
            return guess
        return hashes.index(engine_hash)

    def block(self, position: int) -> Block:
        """Return the block at *position*, as it was stored."""
        return Block(
            self.keys[position],
            self.tokens + (position + 1) * self.block_size,
            self.stretch,
            _LONE_HOLDING,
            self.keys[position - 1] if position else self.parent_chain,
            None,
        )
