"""The blocks of one KV cache group."""

from inferencecache.events.block_table import BlockTable


class BlockGroup:
    """The blocks of one KV cache group of one rank.

    Attributes:
        blocks: Its blocks; another table after everything was forgotten.
        block_size: Largest block size seen in GPU stores, 0 before the first; smaller ones are
            partial blocks.
        certain_from: Least number of the stretches whose blocks are certain to be held; those
            before may be gone.
    """

    __slots__ = ("block_size", "blocks", "certain_from")

    def __init__(self) -> None:
        self.blocks = BlockTable()
        self.block_size = 0
        self.certain_from = 0

    def doubt(self) -> None:
        """Note that any of the blocks may be gone; those that come from now on are certain."""
        self.certain_from = self.blocks.turn_over()
