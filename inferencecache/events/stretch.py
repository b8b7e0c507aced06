"""Part of the order in which the blocks of a group were stored."""

from typing import Final

import msgspec

STRETCH_BLOCKS: Final = 128
"""Blocks after which another stretch is begun; one may hold twice as many."""


class Stretch(msgspec.Struct, gc=False):
    """Blocks that were stored one after another.

    Attributes:
        adapter_id: Partition of the index, of all of them.
        number: Its age; the next one's is greater.
        engine_hashes: Those that are held, oldest first.
    """

    adapter_id: str
    number: int
    engine_hashes: list[int]
