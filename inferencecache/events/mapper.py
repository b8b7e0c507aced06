"""Engine events of one replica to changes of the index.

Theory of operation
-------------------
An engine labels its blocks with hashes that mean nothing outside its process. The index is keyed by
a fingerprint of the tokens up to a block's end. A mapper remembers, per (rank, group, engine hash),
where in its prompt a block stands, so that a later store can continue from it and a removal, which
carries no tokens, can be turned into keys.

Rules of this file
------------------
* A key leaves here only if the engine announced every block up to it.
* Blocks with content that tokens do not describe are remembered, so that what stands below them is
  recognised, but they have no keys.
* Ranks have their own name spaces; keys are shared by all ranks of the replica.
* No input raises: what does not fit is counted.
"""

from collections.abc import Callable, Iterator
from typing import Final

from inferencecache.events.adoption import adopt
from inferencecache.events.block_group import BlockGroup
from inferencecache.events.ledger import Ledger
from inferencecache.events.live_set import live_runs
from inferencecache.events.mapper_counters import Drop, MapperCounters
from inferencecache.events.messages import BlockRemoved, BlockStored, EventBatch
from inferencecache.events.operations import Changes, Operation, StoreRun
from inferencecache.events.orphans import Orphans
from inferencecache.events.rank_space import RankSpace
from inferencecache.events.store_intake import StoreIntake
from inferencecache.settings.producer import MapperSettings
from inferencecache.types import CacheTier

_RECLAIMED_PER_BATCH: Final = 8_192
_GIVEN_UP_PER_BATCH: Final = 1_024
_WITHDRAWN_PER_STEP: Final = 512


Emit = Callable[[list[Operation]], object]


class EventMapper:
    """The blocks of one replica, all its ranks, and the keys it holds.

    Args:
        settings: Block size, bounds and choices.

    Attributes:
        counters: What happened so far.
    """

    def __init__(self, settings: MapperSettings) -> None:
        self.counters = MapperCounters()
        self._settings = settings
        self._ledger = Ledger(settings, self.counters)
        self._orphans = Orphans(
            blocks_max=settings.orphan_blocks_max,
            bytes_max=settings.orphan_bytes_max,
            hold_ns=settings.orphan_hold_ns,
        )
        self._intake = StoreIntake(settings, self._ledger, self._orphans, self.counters)
        self._ranks: dict[int, RankSpace] = {}

    # ------------------------------------------------------------------ changes

    def apply(self, batch: EventBatch, now_ns: int, source_rank: int = 0) -> list[Operation]:
        """Take in one batch at one go and return what the index has to change, in order.

        Args: as for :meth:`steps`.
        """
        changes: list[Operation] = []
        for _ in self.steps(batch, changes.extend, now_ns, source_rank):
            continue
        return changes

    def steps(
        self, batch: EventBatch, emit: Emit, now_ns: int, source_rank: int = 0
    ) -> Iterator[None]:
        """Take in one batch; yield before each further step if there is more than one.

        Meanwhile other ranks' batches may be taken in, and nothing else of this one.

        Args:
            batch: The decoded batch; its own rank wins over *source_rank*.
            emit: Told after each step what the index has to change, in order.
            now_ns: Monotonic or Unix time, only compared with earlier calls.
            source_rank: Rank of the socket the batch came from.
        """
        rank = source_rank if batch.rank is None else batch.rank
        self.counters.batch(batch, source_rank)
        changes = Changes()
        if rank not in self._ranks and len(self._ranks) >= self._settings.ranks_max:
            self.counters.drop(Drop.RANKS)
            return
        self.expire(now_ns)
        self.reclaim(_RECLAIMED_PER_BATCH)
        yield from self.withdraw(emit)
        position = 0
        while position < len(batch.events):
            event, placed = batch.events[position], 0
            if isinstance(event, BlockStored):
                space = self._rank(rank)
                placed = self._intake.place(space, batch.events, position, now_ns, changes)
                if placed and self._orphans.blocks_total:
                    for _ in self._adopt(rank, event, changes):
                        emit(changes.take())
                        yield
            elif isinstance(event, BlockRemoved):
                self._remove(rank, event, changes)
            else:
                self._clear(rank, changes)
            if self._ledger.is_leaving:
                emit(changes.take())
                yield from self.withdraw(emit)
            position += max(placed, 1)
        self._end(rank, batch, changes)
        emit(changes.take())

    def reset(self, rank: int = 0) -> list[Operation]:
        """Forget one rank's blocks, as after a restart of its engine; see :meth:`withdraw`."""
        changes = Changes()
        self._clear(rank, changes)
        self._ledger.withdraw(_WITHDRAWN_PER_STEP, changes)
        return changes.operations

    def withdraw(self, emit: Emit) -> Iterator[None]:
        """Withdraw what a rank had that is gone while others stay; yield after each step.

        The next batch does what is left of it first.
        """
        while self._ledger.is_leaving:
            changes = Changes()
            self._ledger.withdraw(_WITHDRAWN_PER_STEP, changes)
            emit(changes.operations)
            yield

    def start_over(self) -> list[Operation]:
        """Forget all ranks' blocks, whatever state they are in, as after an unforeseen failure."""
        changes = Changes()
        self._ledger.forget_all(self._all_groups())
        self._ledger.set_aside(self._orphans.clear_all())
        self._ranks = {rank: space.anew() for rank, space in self._ranks.items()}
        changes.clear()
        return changes.operations

    def doubt(self, rank: int = 0) -> None:
        """Note that removals of *rank* may have been lost.

        Its blocks are no longer reported again on the slow cycle, so what is stale dies at the
        server's TTL. Those that wait for a parent are given up, since they may have gone meanwhile.
        Blocks that come later are certain again.
        """
        self._rank(rank).doubt()
        self.counters.orphans_dropped += self._orphans.blocks_of(rank)
        self._ledger.set_aside(self._orphans.clear(rank))

    def vouch(self, rank: int, *, is_there: bool) -> None:
        """Note whether the engine of *rank* is there, and still the one that announced its blocks.

        While it is not, the slow cycle leaves its blocks out: those of an engine that never comes
        back die at the server's TTL. That holds until the next call, whatever is cleared meanwhile.
        """
        space = self._rank(rank)
        space.is_vouched_for = is_there
        if is_there:
            space.is_forgotten = False

    def forget(self, rank: int) -> None:
        """Tell nobody any more what *rank* holds, not even an empty server, until it is back."""
        self._rank(rank).is_forgotten = True

    def reclaim(self, entries_max: int) -> bool:
        """Free part of what a clear left behind; True if there is more.

        Every batch does some of it; a driver with time on its hands may do more.
        """
        return self._ledger.reclaim(entries_max)

    def expire(self, now_ns: int) -> bool:
        """Drop blocks that have waited too long for their parent, a slice of them if many have.

        Returns:
            Whether it was a slice.
        """
        dropped = self._orphans.expire(now_ns, _GIVEN_UP_PER_BATCH)
        self.counters.orphans_dropped += dropped
        return dropped >= _GIVEN_UP_PER_BATCH

    def note_skew(self, batch: EventBatch, now_ns: int) -> None:
        """Count a live batch whose clock is far from ours.

        Args:
            batch: A batch that came live, not from a replay.
            now_ns: Unix time.
        """
        distance_ns = abs(batch.timestamp_ns - now_ns)
        if batch.timestamp_ns and distance_ns > self._settings.clock_skew_max_ns:
            self.counters.clock_skews += 1

    # ------------------------------------------------------------------ reads

    def follows(self, rank: int) -> bool:
        """Tell whether anything was heard of *rank*."""
        return rank in self._ranks

    @property
    def blocks_total(self) -> int:
        """Engine blocks remembered."""
        return self._ledger.blocks_total

    @property
    def orphan_blocks(self) -> int:
        """Engine blocks that wait for their parent."""
        return self._orphans.blocks_total

    @property
    def keys_total(self) -> int:
        """Keys held, over all adapters."""
        return len(self._ledger.keys)

    def keys_by_tier(self) -> dict[CacheTier, int]:
        """Return how many keys are held at best at each tier."""
        t2_total = self._ledger.keys.t2_total
        return {CacheTier.T1: self.keys_total - t2_total, CacheTier.T2: t2_total}

    def held_keys(self) -> dict[tuple[str, int], CacheTier]:
        """Return every held (adapter, key) with its tier; linear in keys."""
        return self._ledger.keys.held()

    def live_set(self, *, include_doubtful: bool) -> Iterator[tuple[StoreRun, ...]]:
        """Yield everything held as runs, step by step; other calls may go on in between.

        A step takes a bounded time, so it has no run when little of what is held has keys.

        Args:
            include_doubtful: Whether to include blocks that may be gone unnoticed: those a doubt
                has come upon, those whose copies are no longer counted, those only assumed to be
                offloaded and those of a rank that nobody vouches for, unless that is forgotten.
                True to fill an empty server, False to keep entries alive.
        """
        for rank in list(self._ranks.values()):
            if rank.is_forgotten or not (rank.is_vouched_for or include_doubtful):
                continue
            for group in list(rank.groups.values()):
                yield from live_runs(
                    group, self._ledger.keys, self._settings, include_doubtful=include_doubtful
                )

    def check_invariants(self) -> None:
        """Raise AssertionError if blocks, keys and totals disagree; linear in blocks."""
        self._ledger.check_invariants(self._all_groups())

    # ------------------------------------------------------------------ events

    def _adopt(self, rank: int, event: BlockStored, changes: Changes) -> Iterator[None]:
        """Place what waited for *event*, just placed; yield after each step."""

        def place(child: BlockStored) -> bool:
            return bool(self._intake.place(self._rank(rank), [child], 0, None, changes))

        for removals in adopt(self._orphans, (rank, event), place, self.counters):
            for removal in removals:
                self._remove(rank, removal, changes)
            self._trim(changes)
            yield

    def _remove(self, rank: int, event: BlockRemoved, changes: Changes) -> None:
        space = self._rank(rank)
        lane = self.counters.lane(event.medium)
        group = space.groups.get(event.group_idx)
        if event.is_remote:
            return
        infer = self._settings.infer_offload and not space.has_tier_events
        for engine_hash in event.block_hashes:
            if group is not None and self._ledger.remove(
                group, engine_hash, lane, infer=infer, changes=changes
            ):
                self.counters.removed_blocks += 1
            elif not self._orphans.note_removal(rank, event, engine_hash):
                self.counters.unknown_removals += 1

    def _clear(self, rank: int, changes: Changes) -> None:
        """Forget a rank: one clear if it was alone, evictions if others hold keys too."""
        self.counters.cleared += 1
        space = self._rank(rank)
        self._ledger.set_aside(self._orphans.clear(rank))
        others = any(
            group.blocks
            for number, other in self._ranks.items()
            if number != rank
            for group in other.groups.values()
        )
        if others:
            for group in space.groups.values():
                self._ledger.leave(group)
        else:
            self._ledger.forget_all(self._all_groups())
            changes.clear()
        self._ranks[rank] = space.anew()

    def _end(self, rank: int, batch: EventBatch, changes: Changes) -> None:
        """Draw the conclusions of a whole batch."""
        if batch.may_hide_removals:
            self.doubt(rank)
        self._trim(changes)

    def _trim(self, changes: Changes) -> None:
        self._ledger.trim(self._all_groups(), changes)
        self._ledger.trim_inferred(changes)

    def _rank(self, rank: int) -> RankSpace:
        found = self._ranks.get(rank)
        if found is None:
            found = self._ranks[rank] = RankSpace(rank)
        return found

    def _all_groups(self) -> list[BlockGroup]:
        return [group for rank in self._ranks.values() for group in rank.groups.values()]
