"""Match a long chain piece by piece, so that one lookup does not hold up all others.

Theory of operation: where a block stands in a chain does not matter to the index, so the pieces of
a chain are chains themselves. A replica goes on from one piece to the next if it holds the whole of
the one and the beginning of the other; its age is that of its oldest block, its tier the coldest.
What is reported or removed between two pieces counts for the pieces to come.

Worked example, two blocks a piece, of a request for h1..h5::

    h1 h2    A: 2 blocks, B: 2 blocks, C: 1 block       C has ended with 1
    h3 h4    A: 2 blocks, D: 2 blocks                   B has ended with 2; D came too late
    h5       nobody                                     A has ended with 4
"""

from collections.abc import Sequence
from typing import NamedTuple

from inferencecache.index import PackedHashes, PrefixIndex
from inferencecache.types import INT32_MAX, Candidate, PartitionKey


class _Held(NamedTuple):
    """What a replica holds of the pieces so far: all of them, or what it ended with.

    Attributes:
        oldest_ns: When its oldest block was last seen.
        tier: Its coldest tier.
    """

    oldest_ns: int
    tier: int


class SlicedMatch:
    """One chain that is being matched.

    Args:
        index: Where to look.
        partition: The part of it.
        chain: The blocks, at least one, and the tokens of each.
        now_ns: Unix time, nanoseconds, for all pieces.
        slice_blocks: Blocks of a piece, >= 1.
    """

    __slots__ = (
        "_alive",
        "_at",
        "_ended",
        "_hashes",
        "_index",
        "_key",
        "_now_ns",
        "_slice",
        "_sums",
    )

    def __init__(
        self,
        index: PrefixIndex,
        partition: PartitionKey,
        chain: tuple[Sequence[bytes], Sequence[int]],
        now_ns: int,
        slice_blocks: int,
    ) -> None:
        self._index = index
        self._key = partition
        self._hashes, counts = chain
        self._sums = _Sums(counts)
        self._now_ns = now_ns
        self._slice = slice_blocks
        self._at = 0
        self._alive: dict[str, _Held] = {}
        self._ended: list[tuple[str, int, _Held]] = []

    def step(self) -> bool:
        """Match the next piece and tell whether there is another worth matching.

        Complexity: as :meth:`~inferencecache.index.PrefixIndex.match_chain` of one piece.
        """
        at = self._at
        hashes = piece_of(self._hashes, at, at + self._slice)
        blocks = len(hashes)
        # A count of 1 makes tokens of blocks: what they really are is known to the whole chain.
        found = self._index.match_chain(self._key, hashes, b"\1" * blocks, self._now_ns)
        before, alive = self._alive, {}
        for replica_id, _, oldest_ns, tier, matched in found:
            held = _Held(oldest_ns, tier)
            if at:
                earlier = before.pop(replica_id, None)
                if earlier is None:
                    continue
                held = _Held(min(oldest_ns, earlier.oldest_ns), max(tier, earlier.tier))
            if matched == blocks:
                alive[replica_id] = held
            else:
                self._ended.append((replica_id, at + matched, held))
        self._ended += [(replica_id, at, held) for replica_id, held in before.items()]
        self._alive = alive
        self._at = at + blocks
        return bool(alive) and self._at < len(self._hashes)

    def candidates(self) -> list[Candidate]:
        """Return who holds how much; those whose tokens sum to 0 are left out.

        Complexity: O(replicas log replicas + blocks matched).
        """
        ended = [*self._ended, *((who, self._at, held) for who, held in self._alive.items())]
        ended.sort(key=lambda row: row[1])
        return [
            (replica_id, tokens, held.oldest_ns, held.tier, blocks)
            for replica_id, blocks, held in ended
            if (tokens := self._sums.up_to(blocks))
        ]


class _Sums:
    """Sums of leading counts, asked for in rising order."""

    __slots__ = ("_at", "_counts", "_sum")

    def __init__(self, counts: Sequence[int]) -> None:
        self._counts = counts
        self._at = 0
        self._sum = 0

    def up_to(self, blocks: int) -> int:
        """Return the sum of the first *blocks* counts, saturating."""
        counts, self._at = self._counts[self._at : blocks], blocks
        if type(counts) is bytes and counts == counts[:1] * len(counts):  # as of blocks of one size
            self._sum += counts[0] * len(counts) if counts else 0
        else:
            self._sum += sum(counts)
        return min(self._sum, INT32_MAX)


def piece_of(hashes: Sequence[bytes], start: int, stop: int) -> Sequence[bytes]:
    """Return the blocks of a chain from *start* to before *stop*; of a packed one packed, too.

    Complexity: O(blocks of the piece).
    """
    if isinstance(hashes, PackedHashes):
        stride, width = hashes.stride, len(hashes[0])
        return PackedHashes(hashes.packed[start * stride : stop * stride], width)
    return hashes[start:stop]
