"""Which run each block of a partition is in: one dictionary, and many once it is big.

A dictionary that is always written to is rebuilt by the interpreter whenever its slots are used up,
in one step whose time grows with it: tens of milliseconds at a million blocks, and no lookup is
answered meanwhile. So a big partition's blocks are spread over :data:`PARTS` dictionaries by the
last byte of their hashes, and each rebuild takes its share of that time.

Worked example, were there 2 parts::

    last byte        00 01 02 03 04 ..    the low bits name the part
    places           p0 p1 p0 p1 p0 ..    one reference per byte value
    packed, width 2  02 61 62 00  02 63 65 00  02 66 68 00
    last bytes             62           65           68     one slice, places[62] is p0

A slice of the packed blocks gives all last bytes, and indexing with them gives all dictionaries,
both without a step of the interpreter per block.

A slot may name a run whose block it was before an eviction cut it off; then that run tells which of
its heirs has it, see :class:`~inferencecache.index.run.Run`.

Hashes whose last bytes are all alike share one part, which is then what a small partition has: one
dictionary. That costs time in some steps, never a wrong answer.

Source: docs/adr/0002-runs.md.
"""

from __future__ import annotations

from collections import deque
from itertools import chain, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inferencecache.index.run import Run

    Part = dict[bytes, Run]

PARTS: Final = 128
"""Dictionaries of a big partition. Those of a million blocks have 32,768 slots each, the most whose
numbers the interpreter keeps in two bytes. Random hashes use all parts up at nearly the same time,
so that one report may meet several: the more parts, the wider they scatter."""

SPLIT_BLOCKS: Final = 8_192
"""Blocks at which a partition is spread: few enough that spreading them is a step of 2 ms, many
enough that 10,000 small partitions cost nothing."""


class BlockTable:
    """The runs of a partition by block hash.

    Methods that take many blocks take them both as hashes and packed, in the same order; the
    packed form must be of one width unless there is just one block.

    Attributes:
        get: Return the run of a block, None if it is unknown.
        blocks: How many blocks there are.
    """

    __slots__ = ("_parts", "_places", "blocks", "get")

    get: Callable[[bytes], Run | None]

    def __init__(self) -> None:
        whole: Part = {}
        self._parts: list[Part] = [whole]
        self._places: list[Part] | None = None
        self.get = whole.get
        self.blocks = 0

    def __len__(self) -> int:
        return self.blocks

    def __contains__(self, block_hash: bytes) -> bool:
        return self.get(block_hash) is not None

    def runs(self) -> list[Run]:
        """Return each run once, for checks.

        Complexity: O(blocks).
        """
        return list(dict.fromkeys(filter(None, map(self.get, chain.from_iterable(self._parts)))))

    def add(self, hashes: Sequence[bytes], packed: bytes, run: Run) -> bool:
        """Let *run* have blocks that are all unknown, or change nothing if one is known or twice.

        Each block is probed once: in a big partition a probe is a cache miss, and costs more than
        everything else here.

        Returns:
            Whether they were added.

        Complexity: O(blocks); a part may be rebuilt, in time that grows with its share of all.
        """
        added = len(hashes)
        if added == 1:
            return self._add_one(hashes[0], run)
        if self._places is None:
            owners = map(self._parts[0].setdefault, hashes, repeat(run))
        else:
            owners = map(dict.setdefault, self._parts_of(packed, added), hashes, repeat(run))
        deque(owners, maxlen=0)
        if sum(map(len, self._parts)) - self.blocks != added:
            for block_hash in hashes:
                part = self._part_of(block_hash)
                if part.get(block_hash) is run:
                    del part[block_hash]
            return False
        self._count(added)
        return True

    def _add_one(self, block_hash: bytes, run: Run) -> bool:
        if self._part_of(block_hash).setdefault(block_hash, run) is not run:
            return False
        self._count(1)
        return True

    def _count(self, added: int) -> None:
        self.blocks += added
        if self._places is None and self.blocks > SPLIT_BLOCKS:
            self._spread()

    def move(self, hashes: Sequence[bytes], packed: bytes, run: Run) -> None:
        """Let *run* have blocks that another run has now.

        Complexity: O(blocks).
        """
        if self._places is None:
            self._parts[0].update(zip(hashes, repeat(run)))
            return
        for part, block_hash in zip(self._parts_of(packed, len(hashes)), hashes, strict=True):
            part[block_hash] = run

    def inherit(self, part: Run, run: Run) -> bool:
        """Leave the slots of *part* as they were before it was cut off *run*, if they can be found.

        Only then does a probe of a small table look further than the dictionary.

        Complexity: O(1).
        """
        if not part.inherit(run):
            return False
        if self._places is None:
            self.get = _getter_of_one(self._parts[0])
        return True

    def remove(self, hashes: Sequence[bytes], packed: bytes) -> None:
        """Forget blocks, all of them known.

        Complexity: O(blocks).
        """
        if len(hashes) == 1:
            self.remove_one(hashes[0])
            return
        if self._places is None:
            deque(map(self._parts[0].pop, hashes), maxlen=0)
        else:
            deque(map(dict.pop, self._parts_of(packed, len(hashes)), hashes), maxlen=0)
        self.blocks -= len(hashes)

    def remove_one(self, block_hash: bytes) -> None:
        """Forget one block, which is known.

        Complexity: O(1).
        """
        places = self._places
        del (self._parts[0] if places is None else places[block_hash[-1]])[block_hash]
        self.blocks -= 1

    def _part_of(self, block_hash: bytes) -> Part:
        return self._parts[0] if self._places is None else self._places[block_hash[-1]]

    def _parts_of(self, packed: bytes, blocks: int) -> Sequence[Part]:
        """Return the part of each packed block."""
        assert self._places is not None
        if blocks == 1:
            return (self._places[packed[-2]],)
        stride = len(packed) // blocks
        parts: tuple[Part, ...] = itemgetter(*packed[stride - 2 :: stride])(self._places)
        return parts

    def _spread(self) -> None:
        """Give each block to the part its last byte names."""
        (whole,) = self._parts
        self._parts = [{} for _ in range(PARTS)]
        places = self._places = [self._parts[byte % PARTS] for byte in range(256)]
        last_bytes = map(itemgetter(-1), whole)
        owners = map(places.__getitem__, last_bytes)
        deque(map(dict.setdefault, owners, whole, whole.values()), maxlen=0)
        self.get = _getter(places)


def _getter_of_one(whole: Part) -> Callable[[bytes], Run | None]:
    """Return a probe of *whole*; it must not refer to the table, which refers to it."""

    def get(block_hash: bytes) -> Run | None:
        run = whole.get(block_hash)
        return run if run is None or run.heirs is None else run.part_with(block_hash)

    return get


def _getter(places: list[Part]) -> Callable[[bytes], Run | None]:
    """Return a probe of *places*, likewise."""

    def get(block_hash: bytes) -> Run | None:
        if not block_hash:
            return None
        run = places[block_hash[-1]].get(block_hash)
        return run if run is None or run.heirs is None else run.part_with(block_hash)

    return get
