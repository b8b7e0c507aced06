"""The records the index is made of.

* A :class:`Run` is a stretch of consecutive blocks that the same replicas hold alike.
* A :class:`Hold` is one replica's claim on one run: when last reported, in which tier.
* An :class:`Incarnation` is one life of a replica in a (tenant, model). ALL_CLEARED ends it at
  once, in constant time; its holds are reclaimed afterwards and count for nothing meanwhile.

Ownership: a run owns its holds; the partition owns its runs through ``run_of``; the model owns
its incarnations. A hold that leaves its run leaves its incarnation and its age order too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from inferencecache.index.packing import find, packed_block, unpack
from inferencecache.types import CacheTier

if TYPE_CHECKING:
    from inferencecache.index.partition import Partition
    from inferencecache.index.token_counts import TokenCounts


OWN_TIER: Final = int(CacheTier.T1)
"""The engine's own cache as a plain number: naming it by its class takes 0.2 us, per report."""

HOLD_WORK: Final = 16
"""What removing one hold costs besides its blocks, in blocks; slices of work are cut by it."""

STORE_WORK: Final = 32
"""What storing a stretch costs besides its blocks, likewise."""


HEIRS_MAX: Final = 4
"""Most runs whose blocks are found through one and the same other: what bounds such a search."""


class Incarnation:
    """One life of a replica in one (tenant, model).

    Attributes:
        replica_id: The replica.
        is_cleared: True once ALL_CLEARED ended this life.
        last: The latest of its holds, from which the others follow by :attr:`Hold.before`.
        held: How many holds it has.
        partitions: How many of its holds are in each partition.
        entries: Blocks it holds, over all schemes and adapters.
        newest_ns: At least the newest last_seen of its holds.
        is_newest_exact: Whether *newest_ns* is that newest last_seen.
    """

    __slots__ = (
        "entries",
        "held",
        "is_cleared",
        "is_newest_exact",
        "last",
        "newest_ns",
        "partitions",
        "replica_id",
    )

    def __init__(self, replica_id: str) -> None:
        self.replica_id = replica_id
        self.is_cleared = False
        self.last: Hold | None = None
        self.held = 0
        self.partitions: dict[Partition, int] = {}
        self.entries = 0
        self.newest_ns = 0
        self.is_newest_exact = False

    def saw(self, seen_ns: int) -> None:
        """Note that something was reported at *seen_ns*.

        Complexity: O(1).
        """
        if seen_ns >= self.newest_ns:
            self.newest_ns = seen_ns
            self.is_newest_exact = True

    def forgot(self, seen_ns: int) -> None:
        """Note that a hold stamped *seen_ns* went or moved.

        Complexity: O(1).
        """
        if seen_ns >= self.newest_ns:
            self.is_newest_exact = False

    def hold_more(self, hold: Hold) -> None:
        """Add a hold.

        Complexity: O(1).
        """
        partition = hold.run.partition
        hold.before = self.last
        if self.last is not None:
            self.last.after = hold
        self.last = hold
        self.held += 1
        self.partitions[partition] = self.partitions.get(partition, 0) + 1

    def hold_less(self, hold: Hold) -> None:
        """Take one of its holds away.

        Complexity: O(1).
        """
        before, after = hold.before, hold.after
        if after is None:
            self.last = before
        else:
            after.before = before
        if before is not None:
            before.after = after
        hold.before = hold.after = None
        self.held -= 1
        partition = hold.run.partition
        left = self.partitions[partition] - 1
        if left:
            self.partitions[partition] = left
        else:
            del self.partitions[partition]

    def holds(self) -> Iterator[Hold]:
        """Yield its holds, the latest first.

        Complexity: O(holds) in all.
        """
        hold = self.last
        while hold is not None:
            yield hold
            hold = hold.before

    def newest(self) -> int | None:
        """Return the newest last_seen in nanoseconds, None without holds.

        Complexity: O(1), or O(holds) once after the newest hold went and nothing newer came.
        """
        if self.last is None:
            return None
        if not self.is_newest_exact:
            self.newest_ns = max(hold.last_seen_ns for hold in self.holds())
            self.is_newest_exact = True
        return self.newest_ns


class Hold:
    """One replica's claim on every block of one run.

    Attributes:
        incarnation: Who holds.
        run: What is held.
        last_seen_ns: When it was last reported.
        tier: Storage tier, 1 is the engine's own cache.
        token_counts: The replica's own cumulative counts if they differ from the run's, else None.
        credits: Use count under LFU.
        halvings: How many halvings of its tenant's use counts *credits* has seen, if it is not 0.
        order: Place of its first block among everything reported; among holds of one age the
            largest goes first.
        before: The hold that its incarnation got before this one, or None.
        after: The one it got next, or None.
    """

    __slots__ = (
        "after",
        "before",
        "credits",
        "halvings",
        "incarnation",
        "last_seen_ns",
        "order",
        "run",
        "tier",
        "token_counts",
    )

    def __init__(self, incarnation: Incarnation, run: Run, last_seen_ns: int, tier: int) -> None:
        self.incarnation = incarnation
        self.run = run
        self.last_seen_ns = last_seen_ns
        self.tier = tier
        self.token_counts: TokenCounts | None = None
        self.credits = 0
        self.halvings = 0
        self.order = 0
        self.before: Hold | None = None
        self.after: Hold | None = None

    def matches(self, other: Hold) -> bool:
        """Tell whether two holds of neighbouring runs may become one.

        Complexity: O(1).
        """
        return (
            self.last_seen_ns == other.last_seen_ns
            and self.tier == other.tier
            and self.credits == other.credits
            and (not self.credits or self.halvings == other.halvings)
            and self.token_counts is None
            and other.token_counts is None
        )


class Run:
    """A stretch of consecutive blocks that the same replicas hold alike.

    Attributes:
        partition: Where it lives.
        packed: Its hashes in chain order, see :mod:`inferencecache.index.packing`.
        length: Number of blocks; 0 once the run is gone.
        stride: Bytes per packed block.
        token_counts: Cumulative tokens up to each block.
        holds: Who holds it.
        is_tiered: True if some hold was ever in another tier than T1.
        root: The run that the slots of its blocks name, None if they name it itself.
        heirs: The runs with another's slots, None if there are none.
        following: The run reported right after this one, a hint for joining, or None.
        newest_ns: Newest last_seen of its holds; kept up only while its tenant has a quota.
        newest_order: Largest order among the holds of that age; likewise.
        newest_epoch: Since which start of that order the two are kept up.
    """

    __slots__ = (
        "following",
        "heirs",
        "holds",
        "is_tiered",
        "length",
        "newest_epoch",
        "newest_ns",
        "newest_order",
        "packed",
        "partition",
        "root",
        "stride",
        "token_counts",
    )

    def __init__(
        self, partition: Partition, packed: bytes, length: int, token_counts: TokenCounts
    ) -> None:
        self.partition = partition
        self.packed = packed
        self.length = length
        self.stride = len(packed) // length
        self.token_counts = token_counts
        self.holds: dict[Incarnation, Hold] = {}
        self.is_tiered = False
        self.following: Run | None = None
        self.root: Run | None = None
        self.heirs: list[Run] | None = None
        self.newest_ns = 0
        self.newest_epoch = 0
        self.newest_order = 0

    def take_holds(self, run: Run) -> None:
        """Have the holds of *run*, which has none afterwards; this run has none yet.

        Complexity: O(holders).
        """
        self.holds, run.holds = run.holds, self.holds
        for hold in self.holds.values():
            hold.run = self

    def inherit(self, run: Run) -> bool:
        """Let the slots of these blocks name what they named when they were part of *run*.

        Complexity: O(1).
        """
        root = run.root or run
        if root.heirs is None:
            root.heirs = []
        if len(root.heirs) == HEIRS_MAX:
            return False
        self.root = root
        root.heirs.append(self)
        return True

    def end(self) -> None:
        """Note that nothing is left of this run.

        Complexity: O(1).
        """
        self.length = 0
        self.packed = b""
        self.following = None
        root = self.root
        if root is not None and root.heirs is not None:
            root.heirs.remove(self)
            self.root = None
            if not root.heirs:
                root.heirs = None

    def part_with(self, block_hash: bytes) -> Run:
        """Return which of this run and its heirs has a block whose slot names this run.

        Complexity: O(runs) for the first and last block of one, else O(their lengths).
        """
        runs: tuple[Run, ...] = (self, *(self.heirs or ()))
        packed = packed_block(block_hash)
        for run in runs:
            if run.packed.startswith(packed) or run.packed.endswith(packed):
                return run
        for run in runs:
            if find(run.packed, run.stride, block_hash) >= 0:
                return run
        raise AssertionError("a slot leads to the run of its block")

    def hashes(self) -> Sequence[bytes]:
        """Return the block hashes in chain order.

        Complexity: O(length).
        """
        if self.length == 1:
            return (self.packed[1:-1],)
        return unpack(self.packed, self.stride)

    def position(self, block_hash: bytes) -> int:
        """Return where *block_hash*, which it contains, stands.

        Complexity: O(1) at either end, O(length) in the middle.
        """
        return 0 if self.length == 1 else find(self.packed, self.stride, block_hash)

    def note_tier(self, tier: int) -> None:
        """Remember that a hold is not in the engine's own cache.

        Complexity: O(1).
        """
        if tier != OWN_TIER:
            self.is_tiered = True
