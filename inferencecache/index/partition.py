"""One partition: the blocks of one (tenant, model, hash_scheme, adapter), cut into runs.

Worked example, with 16 tokens a block::

    A reports h1..h4 at t=10   R1 = [h1 h2 h3 h4] {A:10}
    B reports h1,h2  at t=12   R1 = [h1 h2] {A:10, B:12}   R2 = [h3 h4] {A:10}     split at 2
    A reports h1..h4 at t=20   R1 {A:20, B:12}             R2 {A:20}               two writes
    A evicts h4                R1 {A:20, B:12}             R2 = [h3] {A:20}        tail cut off
    B evicts h2                R1 = [h1] {A:20, B:12}      R3 = [h2] {A:20} joins R2: [h2 h3]

Rules of this file:

* every live hash is in exactly one run, which ``run_of`` finds;
* all blocks of a run have the same holders with the same stamp and tier;
* a run that an eviction cut off may be an heir: its slots still name its root, what it was cut
  off, which may be gone; :attr:`BlockTable.get` follows them, one step and no more;
* a run without holds does not exist, nor does an empty partition;
* the hashes of a run have one width, whatever other runs have; a hash too wide to be packed is a
  run of its own, compared by dictionary probe alone.

Source: docs/adr/0002-runs.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from inferencecache.index.block_table import BlockTable
from inferencecache.index.packing import unpack
from inferencecache.index.run import Hold, Incarnation, Run
from inferencecache.index.token_counts import TokenCounts, concatenated

if TYPE_CHECKING:
    from inferencecache.index.tenancy import Ledger, ScopeState

RUN_BLOCKS_MAX: Final = 1_024
"""Longest run: what bounds the cost of cutting one in the middle."""

INHERITED_BLOCKS_MIN: Final = 16
"""Shortest part cut off that leaves its slots as they are; fewer are written at once."""


_BUT_FIRST: Final = slice(1, None)
_BUT_LAST: Final = slice(None, -1)


class Partition:
    """The blocks of one partition and the operations that keep its rules."""

    __slots__ = ("_ledger", "adapter_id", "run_of", "scope")

    def __init__(self, scope: ScopeState, adapter_id: str, ledger: Ledger) -> None:
        self.scope = scope
        self.adapter_id = adapter_id
        self.run_of = BlockTable()
        self._ledger = ledger

    def add_run(
        self, hashes: Sequence[bytes], packed: bytes, token_counts: TokenCounts
    ) -> Run | None:
        """Make a run of blocks, or change nothing and return None if one is known or comes twice.

        The caller gives the run its first hold.

        Args:
            hashes: The blocks in order.
            packed: The same blocks packed.
            token_counts: Their cumulative counts.

        Complexity: O(blocks).
        """
        run = Run(self, packed, len(hashes), token_counts)
        if not self.run_of.add(hashes, packed, run):
            return None
        self._ledger.add(self.scope.model, len(hashes), 0)
        return run

    def add_hold(self, run: Run, incarnation: Incarnation, seen_ns: int, tier: int) -> Hold:
        """Let a replica hold a whole run it does not hold yet.

        Complexity: O(log stamps).
        """
        hold = Hold(incarnation, run, seen_ns, tier)
        hold.order = self._ledger.take_order(run.length)
        self._attach(hold)
        self._count(incarnation, run.length)
        incarnation.saw(seen_ns)
        return hold

    def refresh(self, hold: Hold, seen_ns: int, tier: int) -> None:
        """Overwrite a hold's stamp and tier: the last report wins, even if it is older.

        Complexity: O(log stamps).
        """
        was_ns, incarnation = hold.last_seen_ns, hold.incarnation
        if seen_ns != was_ns:
            if seen_ns < was_ns:
                incarnation.forgot(was_ns)
            order = self._ledger.take_order(hold.run.length)
            self.scope.model.tenant.ages.move(hold, seen_ns, order)
            incarnation.saw(seen_ns)
        if hold.tier != tier:
            hold.tier = tier
            hold.run.note_tier(tier)

    def split(self, run: Run, at: int, *, gap: int = 0, lazily: bool = False) -> tuple[Run, Run]:
        """Cut *run* before block *at* and return both parts.

        The shorter part moves to a new run, so the cost is bounded by half a run.

        Args:
            run: A run of this partition.
            at: Position of the cut, 1 to length - 1.
            gap: Blocks from there on that come into neither part; the caller forgets them.
            lazily: Leave slots as they are, to be followed when looked up; for what nobody may ask
                for again.

        Complexity: O(shorter part + holders * log stamps), most of it writing slots.
        """
        resumes = at + gap
        parts = (run.packed[: at * run.stride], run.packed[resumes * run.stride :])
        counts = (run.token_counts[:at], run.token_counts[resumes:])
        lengths = (at, run.length - resumes)
        moves_left = lengths[0] <= lengths[1]
        moved, kept = (0, 1) if moves_left else (1, 0)
        twin = Run(self, parts[moved], lengths[moved], counts[moved])
        run.packed, run.token_counts, run.length = parts[kept], counts[kept], lengths[kept]
        is_left = lazily and twin.length >= INHERITED_BLOCKS_MIN
        if not (is_left and self.run_of.inherit(twin, run)):
            self.run_of.move(twin.hashes(), twin.packed, twin)
        left, right = (twin, run) if moves_left else (run, twin)
        if not moves_left:
            twin.following = run.following
        left.following = right
        twin.is_tiered = run.is_tiered
        if moves_left:
            left.take_holds(right)
        self._share_holds(left, right, at, resumes)
        return left, right

    def _share_holds(self, left: Run, right: Run, at: int, resumes: int) -> None:
        """Let the holders of *left* hold *right*, which it was one with, as well.

        The holds they had become those of the left part, so that their places in the age order,
        which are those of their first blocks, stay as they are.
        """
        ages = self.scope.model.tenant.ages
        for incarnation, hold in left.holds.items():
            other = Hold(incarnation, right, hold.last_seen_ns, hold.tier)
            other.credits, other.halvings = hold.credits, hold.halvings
            other.order = hold.order + resumes
            if hold.token_counts is not None:
                other.token_counts = hold.token_counts[resumes:]
                hold.token_counts = hold.token_counts[:at]
            right.holds[incarnation] = other
            incarnation.hold_more(other)
            ages.add(other)
        ages.follow(left)

    def join(self, left: Run, right: Run) -> Run | None:
        """Make one run of two that are held alike, or return None.

        Complexity: O(holders) to find out, O(shorter part + holders * log stamps) to do it.
        """
        if not self._joinable(left, right):
            return None
        counts = concatenated(left.token_counts, right.token_counts)
        if counts is None:
            return None
        shorter, longer = (left, right) if left.length <= right.length else (right, left)
        self.run_of.move(shorter.hashes(), shorter.packed, longer.root or longer)
        longer.packed = left.packed + right.packed
        longer.token_counts = counts
        longer.length += shorter.length
        longer.following = right.following
        longer.is_tiered |= shorter.is_tiered
        for hold in list(right.holds.values()):
            self._detach(hold)
        if shorter is left:
            longer.take_holds(left)
            for run in (left, longer):
                self.scope.model.tenant.ages.follow(run)
        shorter.end()
        return longer

    def _joinable(self, left: Run, right: Run) -> bool:
        if left is right or not left.length or not right.length:
            return False
        if left.length + right.length > RUN_BLOCKS_MAX or len(left.holds) != len(right.holds):
            return False
        if left.stride != right.stride or not left.packed[0] == right.packed[0] > 0:
            return False
        others = right.holds
        return all(
            (other := others.get(incarnation)) is not None and hold.matches(other)
            for incarnation, hold in left.holds.items()
        )

    def drop_hold(self, hold: Hold) -> None:
        """Let a replica lose a whole run.

        Complexity: O(log stamps), and O(length) if nobody else holds it.
        """
        run = hold.run
        self._detach(hold)
        if not hold.incarnation.is_cleared:
            self._count(hold.incarnation, -run.length)
        hold.incarnation.forgot(hold.last_seen_ns)
        if not run.holds:
            self._remove_keys(run.hashes(), run.packed)
            run.end()
        self.retire(hold.incarnation)

    def drop_tail(self, hold: Hold, blocks: int) -> None:
        """Let a replica lose the last *blocks* of a run.

        Args:
            hold: The replica's hold.
            blocks: How many, 1 to the run's length.

        Complexity: O(blocks) if nobody else holds it, else as :meth:`split`.
        """
        run = hold.run
        keep = run.length - blocks
        if not keep:
            self.drop_hold(hold)
        elif len(run.holds) == 1:
            self._shrink(hold, keep)
        else:
            left, tail = self.split(run, keep)
            self.drop_hold(tail.holds[hold.incarnation])
            if tail.following is not None:
                left.following = self.join(tail, tail.following) or tail

    def drop_block(self, hold: Hold, block_hash: bytes) -> None:
        """Let a replica lose one block of a run.

        Engines evict block by block, mostly ends of runs that nobody else holds: such a block goes
        in a few steps.

        Args:
            hold: The replica's hold; its life is not over.
            block_hash: A block of its run.

        Complexity: O(1) at either end of a run nobody else holds, else as :meth:`split`.
        """
        run = hold.run
        if len(run.holds) > 1 or run.length == 1:
            self._drop_shared(hold, run.position(block_hash))
            return
        packed = run.packed
        if packed.endswith(block_hash, 0, -1):
            self._keep_only(hold, packed[: -run.stride], _BUT_LAST)
        elif packed.startswith(block_hash, 1):
            self._keep_only(hold, packed[run.stride :], _BUT_FIRST)
        else:
            self.split(run, run.position(block_hash), gap=1, lazily=True)
        self.run_of.remove_one(block_hash)
        incarnation = hold.incarnation
        incarnation.entries -= 1
        self.scope.add_entries(incarnation.replica_id, -1)
        self._ledger.add(self.scope.model, -1, -1)

    def _drop_shared(self, hold: Hold, at: int) -> None:
        """Let a replica lose a block of a run that others hold, or that is no longer than that."""
        run = hold.run
        if at + 1 == run.length:
            self.drop_tail(hold, 1)
        elif at:
            left, _ = self.split(run, at + 1, lazily=True)
            self.drop_tail(left.holds[hold.incarnation], 1)
        else:
            head, _ = self.split(run, 1)
            self.drop_hold(head.holds[hold.incarnation])

    def _keep_only(self, hold: Hold, packed: bytes, part: slice) -> None:
        """Cut a run with one holder down to a *part* of it."""
        run = hold.run
        run.packed = packed
        run.token_counts = run.token_counts[part]
        if hold.token_counts is not None:
            hold.token_counts = hold.token_counts[part]
        run.length = len(run.token_counts)

    def drop_keys(self, run: Run, blocks: int) -> None:
        """Remove the last *blocks* of a run, whoever holds them.

        Complexity: O(blocks + holders * log stamps).
        """
        tail = run if blocks == run.length else self.split(run, run.length - blocks)[1]
        for hold in list(tail.holds.values()):
            self.drop_hold(hold)

    def retire(self, incarnation: Incarnation) -> None:
        """Forget a replica that holds nothing any more, and this partition if nobody does.

        Complexity: O(1).
        """
        model = self.scope.model
        if incarnation.last is None and not incarnation.is_cleared:
            del model.incarnations[incarnation.replica_id]
        if not self.run_of.blocks:
            model.release(self.scope, self.adapter_id)

    def _shrink(self, hold: Hold, keep: int) -> None:
        """Keep only the first *keep* blocks of a run with one holder."""
        run, stride = hold.run, hold.run.stride
        lost = run.length - keep
        gone = run.packed[keep * stride :]
        self._keep_only(hold, run.packed[: keep * stride], slice(None, keep))
        if not hold.incarnation.is_cleared:
            self._count(hold.incarnation, -lost)
        self._remove_keys(unpack(gone, stride), gone)

    def _remove_keys(self, hashes: Sequence[bytes], packed: bytes) -> None:
        self.run_of.remove(hashes, packed)
        self._ledger.add(self.scope.model, -len(hashes), 0)

    def _attach(self, hold: Hold) -> None:
        run = hold.run
        run.holds[hold.incarnation] = hold
        run.note_tier(hold.tier)
        hold.incarnation.hold_more(hold)
        self.scope.model.tenant.ages.add(hold)

    def _detach(self, hold: Hold) -> None:
        del hold.run.holds[hold.incarnation]
        hold.incarnation.hold_less(hold)
        self.scope.model.tenant.ages.discard(hold)

    def _count(self, incarnation: Incarnation, entries: int) -> None:
        incarnation.entries += entries
        self.scope.add_entries(incarnation.replica_id, entries)
        self._ledger.add(self.scope.model, 0, entries)
