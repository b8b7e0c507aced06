"""The prefix cache of one simulated engine: bounded, least recently used block first.

Rules of this file
    1. A block is cached only while its parent is: every cached set is closed under prefixes.
    2. A request never evicts a block of its own chain.

Theory of operation
    The blocks stand in one order of use. Serving a chain moves all its blocks to the recent end,
    deepest first, so a parent always stands behind (is more recent than) its children and the block
    at the old end never has a cached child. Taking victims there is leaf-first LRU without any
    tree. With room for 4 blocks::

        serve a b c      order c b a        hit 0, stored a b c
        serve a b d      order c d b a      hit 2, stored d
        serve e          order d b a e      hit 0, stored e, evicted c
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOutcome:
    """What serving one chain did.

    Attributes:
        hit_blocks: Leading blocks that were cached already.
        stored: Keys of the blocks cached anew; they follow the hit ones in the chain.
        evicted: Keys of the blocks that made room, in the order they went.
    """

    hit_blocks: int
    stored: Sequence[bytes]
    evicted: Sequence[bytes]


class BlockCache:
    """The blocks one engine holds.

    Args:
        capacity_blocks: Most blocks held at a time, >= 1.
    """

    __slots__ = ("_capacity_blocks", "_recency")

    def __init__(self, capacity_blocks: int) -> None:
        self._capacity_blocks = capacity_blocks
        self._recency: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._recency)

    def __contains__(self, block_hash: object) -> bool:
        return block_hash in self._recency

    def matched_blocks(self, block_hashes: Sequence[bytes]) -> int:
        """Return how many leading blocks are cached, without using them.

        Args:
            block_hashes: The chain, from the first block.
        """
        for depth, block_hash in enumerate(block_hashes):
            if block_hash not in self._recency:
                return depth
        return len(block_hashes)

    def serve(self, block_hashes: Sequence[bytes]) -> CacheOutcome:
        """Serve a prompt: use what is cached, store the rest, evict what no longer fits.

        Of a chain longer than the whole cache only the leading blocks are stored.

        Args:
            block_hashes: The chain of the prompt's full blocks.
        """
        fitting = block_hashes[: self._capacity_blocks]
        hit_blocks = self.matched_blocks(fitting)
        stored = fitting[hit_blocks:]
        for block_hash in fitting[:hit_blocks]:
            self._recency.move_to_end(block_hash)
        excess = len(self._recency) + len(stored) - self._capacity_blocks
        evicted = [self._recency.popitem(last=False)[0] for _ in range(excess)]
        for block_hash in reversed(fitting):
            self._recency[block_hash] = None
            self._recency.move_to_end(block_hash)
        return CacheOutcome(hit_blocks=hit_blocks, stored=stored, evicted=evicted)
