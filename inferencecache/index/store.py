"""Store a stretch of blocks: refresh what is known, cut where needed, add what is new."""

from collections.abc import Sequence

from inferencecache.index.packing import (
    OVERHEAD,
    WIDTH_MAX,
    common_blocks,
    is_uniform,
    pack,
    pack_single,
)
from inferencecache.index.partition import RUN_BLOCKS_MAX, Partition
from inferencecache.index.run import Hold, Incarnation, Run
from inferencecache.index.token_counts import TokenCounts, compact


class StretchWriter:
    """Writes one stretch for one replica into one partition.

    Theory of operation: walk the stretch from its head. Where the next block is known, find how
    far its run and the stretch agree, cut the run to just that extent, and overwrite the replica's
    hold on it. Where it is unknown, find the next known block, and make runs of what lies before.
    Neighbours that end up held alike are joined again.

    Args:
        partition: Where to store.
        incarnation: Who reports.
        seen_ns: The report's stamp.
        tier: Its storage tier.
        hash_bytes_max: Longest hash stored.

    Attributes:
        dropped: Blocks not stored because their hash was longer.
    """

    __slots__ = (
        "_blocks",
        "_hash_bytes_max",
        "_incarnation",
        "_is_uniform",
        "_partition",
        "_previous",
        "_seen_ns",
        "_tier",
        "dropped",
    )

    def __init__(
        self,
        partition: Partition,
        incarnation: Incarnation,
        seen_ns: int,
        tier: int,
        hash_bytes_max: int,
    ) -> None:
        self._partition = partition
        self._incarnation = incarnation
        self._seen_ns = seen_ns
        self._tier = tier
        self._hash_bytes_max = hash_bytes_max
        self._previous: Run | None = None
        self._is_uniform = False
        self._blocks = 0
        self.dropped = 0

    def write(self, hashes: Sequence[bytes], counts: TokenCounts, packed: bytes = b"") -> None:
        """Store *hashes* with their cumulative *counts*.

        Args:
            hashes: Blocks in order, at least one.
            counts: Cumulative counts, parallel to *hashes*.
            packed: The blocks packed, if they are known to have one width.

        Complexity: one probe and one comparison per known run, O(1) per new block, and
        O(shorter part) per cut, of which a stretch makes at most two per run it meets.
        """
        run_of = self._partition.run_of
        at, blocks = 0, len(hashes)
        self._blocks = blocks
        width = len(hashes[0])
        self._is_uniform = bool(packed)
        if not packed and blocks > 1 and width <= WIDTH_MAX:
            packed = pack(hashes, width)
            self._is_uniform = is_uniform(packed, width)
        if self._is_uniform and width > self._hash_bytes_max:
            self.dropped += blocks
            return
        stride = width + OVERHEAD if packed else 0
        while at < blocks:
            run = run_of.get(hashes[at])
            if run is None:
                stop = min(at + RUN_BLOCKS_MAX, blocks)
                part = packed[at * stride : stop * stride]
                at += self._add(hashes[at:stop], part, counts[at:stop])
            else:
                rest = counts[at:] if at else counts
                at += self._refresh(run, hashes[at], packed, at * stride, rest)

    def _add(self, hashes: Sequence[bytes], packed: bytes, counts: TokenCounts) -> int:
        """Add blocks of which the first is unknown; return how many were handled."""
        blocks = len(hashes)
        if blocks == 1:
            self._add_single(hashes[0], counts)
            return 1
        if self._is_uniform:
            run = self._partition.add_run(hashes, packed, counts)
            if run is not None:
                self._hold(run)
                return blocks
            known = self._next_known(hashes)
            if known < blocks:
                cut = known * (len(packed) // blocks)
                return self._add(hashes[:known], packed[:cut], counts[:known])
        for block_hash, count in zip(hashes, counts, strict=True):
            self._write_single(block_hash, range(count, count + 1))
        return blocks

    def _next_known(self, hashes: Sequence[bytes]) -> int:
        get_run = self._partition.run_of.get
        for position, block_hash in enumerate(hashes):
            if get_run(block_hash) is not None:
                return position
        return len(hashes)

    def _add_single(self, block_hash: bytes, counts: TokenCounts) -> None:
        if len(block_hash) > self._hash_bytes_max:
            self.dropped += 1
            return
        run = self._partition.add_run([block_hash], pack_single(block_hash), compact(counts))
        if run is not None:
            self._hold(run)

    def _write_single(self, block_hash: bytes, count: range) -> None:
        run = self._partition.run_of.get(block_hash)
        if run is None:
            self._add_single(block_hash, count)
        else:
            self._refresh(run, block_hash, b"", 0, count)

    def _hold(self, run: Run) -> None:
        self._partition.add_hold(run, self._incarnation, self._seen_ns, self._tier)
        self._link(run)

    def _refresh(
        self, run: Run, block_hash: bytes, packed: bytes, at: int, counts: TokenCounts
    ) -> int:
        """Refresh the known blocks that start at *block_hash*; return how many they were."""
        partition = self._partition
        start, extent = 0, 1
        if run.length > 1:
            stride = run.stride
            comparable = packed and len(block_hash) + OVERHEAD == len(packed) // self._blocks
            if comparable and packed.startswith(run.packed, at):
                extent = run.length
            else:
                start = run.position(block_hash)
                if comparable:
                    extent = common_blocks(packed, at, run.packed, start * stride, stride)
        if extent < len(counts):
            counts = counts[:extent]
        hold = run.holds.get(self._incarnation)
        if hold is not None and self._is_current(hold, start, counts):
            self._previous = None
            return extent
        if extent != run.length:
            run = carve(partition, run, start, extent)
            hold = run.holds.get(self._incarnation)
        self._overwrite(run, hold, counts)
        self._link(run)
        return extent

    def _is_current(self, hold: Hold, start: int, counts: TokenCounts) -> bool:
        """Tell whether the report changes nothing, so that nothing needs cutting."""
        if hold.last_seen_ns != self._seen_ns or hold.tier != self._tier:
            return False
        own = hold.run.token_counts if hold.token_counts is None else hold.token_counts
        return same_counts(own[start : start + len(counts)], counts)

    def _overwrite(self, run: Run, hold: Hold | None, counts: TokenCounts) -> None:
        if hold is None:
            hold = self._partition.add_hold(run, self._incarnation, self._seen_ns, self._tier)
        else:
            self._partition.refresh(hold, self._seen_ns, self._tier)
        if same_counts(counts, run.token_counts):
            hold.token_counts = None
        elif len(run.holds) == 1:
            run.token_counts = compact(counts)
            hold.token_counts = None
        else:
            hold.token_counts = compact(counts)

    def _link(self, run: Run) -> None:
        previous = self._previous
        if previous is not None and previous.length and previous is not run:
            previous.following = run
            run = self._partition.join(previous, run) or run
        self._previous = run


def carve(partition: Partition, run: Run, start: int, extent: int) -> Run:
    """Cut *run* so that the blocks from *start* on, *extent* of them, are a run of their own.

    Complexity: O(shorter part) per cut, at most two.
    """
    if start:
        _, run = partition.split(run, start)
    if extent < run.length:
        run, _ = partition.split(run, extent)
    return run


def same_counts(left: Sequence[int], right: Sequence[int]) -> bool:
    """Tell whether two sequences of counts are equal, whatever their type.

    Complexity: O(1) for two ranges, O(length) otherwise.
    """
    if type(left) is type(right):
        return left == right
    return tuple(left) == tuple(right)
