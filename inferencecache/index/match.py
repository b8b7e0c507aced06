"""Match a request against one partition: who holds how much of it, how fresh, how cold.

Theory of operation: blocks of one run have the same holders, so replicas join and leave only at run
boundaries. The first run names the candidates. At each further run a replica goes on if it holds
that run and is fresh there; otherwise its match ends. The walk ends with the last replica, or at
the first block nobody holds. Most requests end within their first run, which is answered without
keeping any state per replica.

Reads never change anything.
"""

from collections.abc import Sequence
from itertools import accumulate

from inferencecache.index.packed_hashes import PackedHashes
from inferencecache.index.packing import OVERHEAD, common_blocks, pack
from inferencecache.index.partition import RUN_BLOCKS_MAX, Partition
from inferencecache.index.run import OWN_TIER, Incarnation, Run
from inferencecache.types import INT32_MAX, Candidate

Ended = tuple[Incarnation, int, int]
"""(incarnation, matched blocks, oldest last_seen_ns) of a match that is over."""


def match_chain(
    partition: Partition, hashes: Sequence[bytes], counts: Sequence[int], stale_ns: int
) -> list[Candidate]:
    """Return the replicas that hold a leading part of a chain.

    Args:
        partition: Where to look.
        hashes: The request's blocks.
        counts: Tokens of each block, parallel to *hashes*, >= 0.
        stale_ns: Stamps at or before this have outlived their TTL.

    Complexity: O(runs met * holders), plus packing about 12 ns per matched block of a chain that
    does not come packed.
    """
    get_run = partition.run_of.get
    run = get_run(hashes[0])
    if run is None:
        return []
    request: Request | None = None
    if (
        type(hashes) is PackedHashes
        and run.stride == hashes.stride
        and hashes.packed.startswith(run.packed)
    ):
        # Most requests off the wire have all of their first run: no need to keep where they are.
        blocks = run.length
    else:
        request = Request(partition, hashes)
        blocks = request.extent(run, 0)
    following = get_run(hashes[blocks]) if blocks < len(hashes) else None
    if following is None:
        tokens = _tokens(counts, blocks)
        if not tokens:
            return []
        return [
            (who.replica_id, tokens, hold.last_seen_ns, hold.tier, blocks)
            for who, hold in run.holds.items()
            if hold.last_seen_ns > stale_ns and not who.is_cleared
        ]
    walk = _Walk(run, stale_ns)
    walk.go_on(request or Request(partition, hashes), following, blocks)
    return walk.candidates(counts)


def match_exact(partition: Partition, block_hash: bytes, stale_ns: int) -> list[Candidate]:
    """Return the replicas that hold one block, with the token counts they stored.

    Complexity: O(holders), and O(run length) to find a block in the middle of a run.
    """
    run = partition.run_of.get(block_hash)
    if run is None:
        return []
    at = run.position(block_hash)
    return [
        (
            who.replica_id,
            (hold.token_counts or run.token_counts)[at],
            hold.last_seen_ns,
            hold.tier,
            1,
        )
        for who, hold in run.holds.items()
        if hold.last_seen_ns > stale_ns and not who.is_cleared
    ]


def _tokens(counts: Sequence[int], blocks: int) -> int:
    """Sum the first *blocks* counts, saturating."""
    if _are_equal(counts):
        return min(counts[0] * blocks, INT32_MAX)
    return min(sum(counts[:blocks]), INT32_MAX)


def _are_equal(counts: Sequence[int]) -> bool:
    """Tell whether all counts are alike, as blocks of one size are."""
    if type(counts) is bytes:
        return counts == counts[:1] * len(counts)  # a sixth of the time of counting them
    return counts.count(counts[0]) == len(counts)


class Request:
    """The request's blocks, packed piece by piece as far as the match gets, unless they came so.

    It is read from its head on, once. Blocks are packed by the width of the run they are compared
    with. A request whose hashes differ in width is packed again whenever the width changes.
    """

    __slots__ = ("_packed", "_start", "_stop", "_stride", "hashes", "partition")

    def __init__(self, partition: Partition, hashes: Sequence[bytes]) -> None:
        self.partition = partition
        self.hashes = hashes
        self._start = 0
        if type(hashes) is PackedHashes:
            self._packed = hashes.packed
            self._stop = len(hashes)
            self._stride = hashes.stride
        else:
            self._packed = b""
            self._stop = 0
            self._stride = 0

    def extent(self, run: Run, at: int) -> int:
        """Return how many blocks request and *run*, which holds block *at*, share from there.

        Complexity: as for :func:`~inferencecache.index.packing.common_blocks`, plus packing.
        """
        if run.length == 1:
            return 1
        stride = run.stride
        if stride != self._stride or at + run.length > self._stop < len(self.hashes):
            self._pack(at, stride)
        packed, offset = self._packed, (at - self._start) * stride
        if packed.startswith(run.packed, offset):
            return run.length
        start = run.position(self.hashes[at])
        return common_blocks(packed, offset, run.packed, start * stride, stride)

    def _pack(self, start: int, stride: int) -> None:
        """Pack the blocks from *start* on, as many as a run may have; those before are over."""
        self._start, self._stride = start, stride
        self._stop = min(start + RUN_BLOCKS_MAX, len(self.hashes))
        self._packed = pack(self.hashes, stride - OVERHEAD, start, self._stop)


class _Walk:
    """The replicas still matching, from run to run."""

    __slots__ = ("_alive", "_ended", "_stale_ns", "_tiers")

    def __init__(self, run: Run, stale_ns: int) -> None:
        self._stale_ns = stale_ns
        self._ended: list[Ended] = []
        self._tiers: dict[Incarnation, int] = {}
        self._alive = {
            who: hold.last_seen_ns
            for who, hold in run.holds.items()
            if hold.last_seen_ns > stale_ns and not who.is_cleared
        }
        if run.is_tiered:
            self._fold_tiers(run)

    def go_on(self, request: Request, run: Run | None, at: int) -> None:
        """Walk from *run*, which holds block *at* of the request, to the end of the match."""
        alive, stale_ns = self._alive, self._stale_ns
        hashes, get_run = request.hashes, request.partition.run_of.get
        blocks = len(hashes)
        while run is not None and alive:
            get_hold = run.holds.get
            gone = []
            for who, oldest in alive.items():
                hold = get_hold(who)
                if hold is None:
                    gone.append(who)
                elif (seen_ns := hold.last_seen_ns) is not oldest and seen_ns < oldest:
                    if seen_ns > stale_ns:
                        alive[who] = seen_ns
                    else:
                        gone.append(who)
            if gone:
                self._ended += [(who, at, alive.pop(who)) for who in gone]
            if run.is_tiered:
                self._fold_tiers(run)
            at += 1 if run.length == 1 else request.extent(run, at)
            run = get_run(hashes[at]) if at < blocks else None
        self._ended += [(who, at, oldest) for who, oldest in alive.items()]

    def _fold_tiers(self, run: Run) -> None:
        tiers = self._tiers
        for who in self._alive:
            tier = run.holds[who].tier
            if tier > tiers.get(who, OWN_TIER):
                tiers[who] = tier

    def candidates(self, counts: Sequence[int]) -> list[Candidate]:
        """Return what was matched; replicas whose tokens sum to 0 are left out."""
        if not self._ended:
            return []
        depths = {blocks for _, blocks, _ in self._ended}
        if _are_equal(counts):
            tokens_of = {blocks: min(counts[0] * blocks, INT32_MAX) for blocks in depths}
        else:
            sums = list(accumulate(counts[: max(depths)]))
            tokens_of = {blocks: min(sums[blocks - 1], INT32_MAX) for blocks in depths}
        tiers = self._tiers
        return [
            (who.replica_id, tokens, oldest, tiers.get(who, OWN_TIER), blocks)
            for who, blocks, oldest in self._ended
            if (tokens := tokens_of[blocks])
        ]
