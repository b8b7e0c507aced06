"""The blocks of one group by engine hash, and in the order they were stored in.

Theory of operation
-------------------
Blocks are in shards, which know no order among each other. The order is kept beside them in
*stretches*, lists of some hundred engine hashes that were stored one after another::

    shards      {7: B7} {1: B1, 5: B5} {2: B2} ...      by engine hash
    stretches   [1, 5, 7]  [2]                          oldest first

A block names its stretch, so that it can be taken out of both. An engine evicts a prompt from its
end, where that costs nothing; elsewhere it costs a look through one stretch.

Plain blocks that were stored together are in the shards as one run, each under its own hash, until
one is asked for; see ``plain_run``.

Rules of this file
------------------
* An engine hash is in the stretch of its block and in no other. Only :meth:`BlockTable.stretch`
  hands stretches out; who adds a block to a shard adds its hash to the block's stretch.
* One partition, one stretch at a time: blocks share the name of theirs through it.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from inferencecache.events.blocks import Block
from inferencecache.events.plain_run import PlainRun
from inferencecache.events.shards import SHARD_MASK, filled, new_shards
from inferencecache.events.stretch import STRETCH_BLOCKS, Stretch

_OPEN_MAX: Final = 256


class BlockTable:
    """Blocks by engine hash.

    Attributes:
        shards: The blocks, see ``shards``; the flat loops of ``placer`` add to them themselves.
        latest: The stretch that was handed out last.
    """

    __slots__ = ("_next_number", "_open", "_stretches", "latest", "shards")

    def __init__(self) -> None:
        self.shards: list[dict[int, Block | PlainRun]] = new_shards()
        self._stretches: dict[int, Stretch] = {}
        self._open: dict[str, Stretch] = {}
        self._next_number = 0
        self.latest = self.stretch("")

    def __len__(self) -> int:
        return sum(map(len, self.shards))

    def __contains__(self, engine_hash: int) -> bool:
        return engine_hash in self.shards[engine_hash & SHARD_MASK]

    def get(self, engine_hash: int) -> Block | None:
        """Return a block, None if it is not held; what is changed in it stays."""
        shard = self.shards[engine_hash & SHARD_MASK]
        found = shard.get(engine_hash)
        if type(found) is PlainRun:
            found = shard[engine_hash] = self._take(found, engine_hash)
        return found

    def _take(self, run: PlainRun, engine_hash: int) -> Block:
        """Return a block of *run*, to be kept on its own or not at all."""
        block = run.take(engine_hash)
        if run.is_worn:
            self._dissolve(run)
        return block

    def look(self, engine_hash: int) -> Block | None:
        """Return a block as it is now, perhaps a copy; None if it is not held."""
        found = self.shards[engine_hash & SHARD_MASK].get(engine_hash)
        if type(found) is PlainRun:
            return found.block(found.position(engine_hash))
        return found

    def _dissolve(self, run: PlainRun) -> None:
        """Make blocks of what is left of *run*, so that few do not keep what many needed."""
        for position, engine_hash in enumerate(run.engine_hashes):
            shard = self.shards[engine_hash & SHARD_MASK]
            if shard.get(engine_hash) is run:
                shard[engine_hash] = run.block(position)

    def stretch(self, adapter_id: str) -> Stretch:
        """Return where the next block goes, or the next :data:`STRETCH_BLOCKS` at most."""
        found = self._open.get(adapter_id)
        if found is None and len(self._open) >= _OPEN_MAX:
            self._close_all()
        if found is None or len(found.engine_hashes) >= STRETCH_BLOCKS:
            found = Stretch(adapter_id, self._next_number, [])
            self._next_number += 1
            self._stretches[found.number] = self._open[adapter_id] = found
        self.latest = found
        return found

    def turn_over(self) -> int:
        """Return the least number of the stretches that blocks go to from now on."""
        self._close_all()
        return self.stretch("").number

    def _close_all(self) -> None:
        """Add to no stretch any more; the next call of :meth:`stretch` makes one."""
        for found in self._open.values():
            if not found.engine_hashes:
                del self._stretches[found.number]
        self._open.clear()

    def add_run(self, run: PlainRun) -> bool:
        """Add blocks, the youngest now; False and nothing is added if one of them is held."""
        shards, hashes = self.shards, run.engine_hashes
        held = [
            name for name in hashes if shards[name & SHARD_MASK].setdefault(name, run) is not run
        ]
        if not held:
            run.stretch.engine_hashes.extend(hashes)
            return True
        for engine_hash in set(hashes).difference(held):
            del shards[engine_hash & SHARD_MASK][engine_hash]
        return False

    def insert(self, engine_hash: int, block: Block) -> None:
        """Add a block that is not held, the youngest now."""
        self.shards[engine_hash & SHARD_MASK][engine_hash] = block
        block.stretch.engine_hashes.append(engine_hash)

    def pop(self, engine_hash: int) -> Block | None:
        """Remove and return a block, None if it is not held."""
        found = self.shards[engine_hash & SHARD_MASK].pop(engine_hash, None)
        block = self._take(found, engine_hash) if type(found) is PlainRun else found
        if block is not None:
            stretch = block.stretch
            hashes = stretch.engine_hashes
            if hashes[-1] == engine_hash:
                hashes.pop()
            else:
                hashes.remove(engine_hash)
            if not hashes and self._open.get(stretch.adapter_id) is not stretch:
                del self._stretches[stretch.number]
        return block

    def oldest(self) -> Iterator[int]:
        """Yield engine hashes in the order they came in; nothing may change meanwhile."""
        for stretch in self._stretches.values():
            yield from stretch.engine_hashes

    def first(self, blocks: int) -> list[int]:
        """Return the engine hashes of the oldest *blocks*."""
        return list(islice(self.oldest(), blocks))

    def present(self) -> Iterator[tuple[int, Block]]:
        """Yield what is held when it is due, oldest first; what comes meanwhile may be missing.

        A block may be a copy, so what it has become after a change is to be asked of :meth:`look`.

        Complexity:
            One step per stretch, before the first.
        """
        run, position = None, 0
        for stretch in list(self._stretches.values()):
            for engine_hash in list(stretch.engine_hashes):
                found = self.shards[engine_hash & SHARD_MASK].get(engine_hash)
                if found is None or found.stretch is not stretch:
                    continue
                if type(found) is not PlainRun:
                    yield engine_hash, found
                    continue
                position = found.position(engine_hash, position + 1 if found is run else 0)
                run = found
                yield engine_hash, run.block(position)

    def items(self) -> Iterator[tuple[int, Block]]:
        """Yield every block, in no order, as copies; nothing may change meanwhile."""
        for shard in self.shards:
            for engine_hash, found in shard.items():
                if type(found) is not PlainRun:
                    yield engine_hash, found
                else:
                    yield engine_hash, found.block(found.position(engine_hash))

    def values(self) -> Iterator[Block]:
        """Yield every block, as :meth:`items` does."""
        return (block for _, block in self.items())

    def check_invariants(self) -> None:
        """Raise AssertionError if shards and stretches disagree; linear in blocks."""
        stretches = self._stretches
        told = [
            (found.number, name) for found in stretches.values() for name in found.engine_hashes
        ]
        held = [(block.stretch.number, engine_hash) for engine_hash, block in self.items()]
        assert sorted(told) == sorted(held), "a hash is in its block's stretch"  # noqa: S101 - ours
        kept = {found.number for found in stretches.values() if found.engine_hashes}
        unused = {found.number for found in self._open.values()}
        assert stretches.keys() <= kept | unused, "nothing empty is kept"  # noqa: S101 - ours

    def parts(self) -> Iterator[tuple[dict[int, Any], int]]:
        """Yield the dictionaries it is made of, and what freeing an entry of each costs in blocks.

        For a table that is not used any more, to be taken apart in slices.
        """
        yield self._stretches, STRETCH_BLOCKS
        for shard in filled(self.shards):
            yield shard, 1
