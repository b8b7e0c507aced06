"""Which of a tenant's holds goes first: for expiry, for the cap, for the quota."""

from collections.abc import Iterator
from operator import attrgetter, itemgetter
from typing import Protocol

from inferencecache.index.age_order import AgeOrder
from inferencecache.index.run import Hold, Run
from inferencecache.types import EvictionAlgorithm


class HeadListener(Protocol):
    """Told when a tenant's oldest hold may have become older."""

    def __call__(self, seen_ns: int) -> None:
        """Take notice that something stamped *seen_ns* came in."""
        ...


class TenantAges:
    """The orders over one tenant's holds, and over its runs while it has a quota.

    Holds used under LFU stand apart from those never used, so that the cap finds its victim
    without passing over the used ones. Expiry and LRU look at both. While use counts are halved,
    used holds whose turn has not come stand apart from the others; parts they are cut into do, too.

    Attributes:
        follows_runs: Whether every run is ordered.
    """

    __slots__ = (
        "_counts_uses",
        "_due",
        "_epoch",
        "_halvings",
        "_listener",
        "_newest",
        "_unused",
        "_used",
        "follows_runs",
    )

    def __init__(self, listener: HeadListener) -> None:
        self._listener = listener
        self._unused: AgeOrder[Hold] = AgeOrder(attrgetter("order"))
        self._used: AgeOrder[Hold] = AgeOrder(attrgetter("order"))
        self._due: AgeOrder[Hold] = AgeOrder(attrgetter("order"))
        self._halvings = 0
        self._counts_uses = False
        self._newest: AgeOrder[Run] | None = None
        self._epoch = 0
        self.follows_runs = False

    def add(self, hold: Hold) -> None:
        """Put a hold in.

        Complexity: O(log stamps); with a quota also O(holders).
        """
        seen_ns = hold.last_seen_ns
        self._order_of(hold).add(hold, seen_ns)
        if not hold.credits:
            self._listener(seen_ns)
        if self._newest is not None:
            self.follow(hold.run)

    def discard(self, hold: Hold) -> None:
        """Take a hold out, after it left its run.

        Complexity: O(log stamps); with a quota also O(holders).
        """
        self._order_of(hold).discard(hold, hold.last_seen_ns)
        if self._newest is not None:
            self.follow(hold.run)

    def move(self, hold: Hold, seen_ns: int, order: int) -> None:
        """Give a hold a new stamp, and a new place among those of its age.

        Complexity: O(log stamps); with a quota also O(holders).
        """
        holds, was_ns = self._order_of(hold), hold.last_seen_ns
        is_done = holds.advance(was_ns, seen_ns, order)
        if not is_done:
            holds.discard(hold, was_ns)
        hold.last_seen_ns = seen_ns
        hold.order = order
        if not is_done:
            holds.add(hold, seen_ns)
        if seen_ns < was_ns:
            self._listener(seen_ns)
        if self._newest is not None:
            self.follow(hold.run)

    def use(self, hold: Hold) -> None:
        """Count one use of a hold.

        Complexity: O(1), or O(log stamps) for its first use, also of those since a halving began.
        """
        holds = self._order_of(hold)
        if holds is self._used:
            hold.credits += 1
            return
        self._counts_uses = True
        holds.discard(hold, hold.last_seen_ns)
        hold.credits = hold.credits // 2 + 1
        hold.halvings = self._halvings
        self._used.add(hold, hold.last_seen_ns)

    def begin_halving(self) -> None:
        """Let every use count be due to be halved; those of an earlier halving must be done.

        Complexity: O(1).
        """
        assert not self._due, "the last halving is over"
        self._used, self._due = self._due, self._used
        self._halvings += 1

    def halve_one(self) -> bool:
        """Halve one use count that is due, or return False if none is.

        Complexity: O(log stamps).
        """
        hold = self._due.oldest()
        if hold is None:
            return False
        self._due.discard(hold, hold.last_seen_ns)
        hold.credits //= 2
        hold.halvings = self._halvings
        self._order_of(hold).add(hold, hold.last_seen_ns)
        self._listener(hold.last_seen_ns)
        return True

    def _order_of(self, hold: Hold) -> AgeOrder[Hold]:
        if not hold.credits:
            return self._unused
        return self._used if hold.halvings == self._halvings else self._due

    def oldest(self) -> Hold | None:
        """Return the oldest hold, used or not.

        Complexity: O(log stamps).
        """
        if not self._counts_uses:
            return self._unused.oldest()
        heads = ((order.oldest_ns(), order) for order in (self._unused, self._used, self._due))
        found = [(seen_ns, order) for seen_ns, order in heads if seen_ns is not None]
        first = min(found, key=itemgetter(0), default=None)
        return first[1].oldest() if first is not None else None

    def victim(self, algorithm: EvictionAlgorithm) -> Hold | None:
        """Return the hold the cap takes from first; under LFU only one never used.

        Complexity: O(log stamps).
        """
        return self._unused.oldest() if algorithm is EvictionAlgorithm.LFU else self.oldest()

    def follow_runs_slices(self, slice_runs: int) -> Iterator[None]:
        """Start ordering runs by their newest hold, for a quota, yielding between slices.

        What changes meanwhile is followed as it changes, and it may be done twice at a time. Where
        the quota went meanwhile, and perhaps another came, this is over and nothing is said.

        Complexity: O(runs log runs).
        """
        if self._newest is None:
            self._newest = AgeOrder(attrgetter("newest_order"))
            self._epoch += 1
        begun = self._newest
        runs = list(dict.fromkeys(hold.run for hold in self.holds()))
        for done, run in enumerate(runs, start=1):
            self.follow(run)
            if done % slice_runs == 0:
                yield
                if self._newest is not begun:
                    return
        self.follows_runs = True

    def unfollow_runs(self) -> None:
        """Stop ordering runs.

        Complexity: O(1).
        """
        self._newest = None
        self.follows_runs = False

    def stalest_run(self) -> Run | None:
        """Return the run whose newest hold is oldest; only while runs are ordered.

        Complexity: O(log stamps).
        """
        return self._newest.oldest() if self._newest is not None else None

    def follow(self, run: Run) -> None:
        """Put a run in its place after its holds changed, if runs are ordered.

        Complexity: O(1), with a quota O(holders + log stamps).
        """
        order = self._newest
        if order is None:
            return
        newest = max(((h.last_seen_ns, h.order) for h in run.holds.values()), default=None)
        if run.newest_epoch == self._epoch:
            if newest == (run.newest_ns, run.newest_order):
                return
            order.discard(run, run.newest_ns)
            run.newest_epoch = 0
        if newest is not None:
            run.newest_ns, run.newest_order = newest
            run.newest_epoch = self._epoch
            order.add(run, run.newest_ns)

    def holds(self) -> list[Hold]:
        """Return every hold, for checks.

        Complexity: O(holds).
        """
        return self._unused.items() + self._used.items() + self._due.items()

    def runs(self) -> list[Run]:
        """Return every ordered run, for checks.

        Complexity: O(runs).
        """
        return self._newest.items() if self._newest is not None else []
