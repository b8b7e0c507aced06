"""Which of a tenant's holds goes first: for expiry, for the cap, for the quota."""

from collections.abc import Iterator
from operator import attrgetter
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
    without passing over the used ones. Expiry and LRU look at both.

    Attributes:
        follows_runs: Whether every run is ordered.
    """

    __slots__ = ("_epoch", "_listener", "_newest", "_unused", "_used", "follows_runs")

    def __init__(self, listener: HeadListener) -> None:
        self._listener = listener
        self._unused: AgeOrder[Hold] = AgeOrder(attrgetter("order"))
        self._used: AgeOrder[Hold] = AgeOrder(attrgetter("order"))
        self._newest: AgeOrder[Run] | None = None
        self._epoch = 0
        self.follows_runs = False

    def add(self, hold: Hold) -> None:
        """Put a hold in.

        Complexity: O(log stamps); with a quota also O(holders).
        """
        seen_ns = hold.last_seen_ns
        if hold.credits:
            self._used.add(hold, seen_ns)
        else:
            self._unused.add(hold, seen_ns)
            self._listener(seen_ns)
        if self._newest is not None:
            self._follow(hold.run)

    def discard(self, hold: Hold) -> None:
        """Take a hold out, after it left its run.

        Complexity: O(log stamps); with a quota also O(holders).
        """
        (self._used if hold.credits else self._unused).discard(hold, hold.last_seen_ns)
        if self._newest is not None:
            self._follow(hold.run)

    def move(self, hold: Hold, seen_ns: int, order: int) -> None:
        """Give a hold a new stamp, and a new place among those of its age.

        Complexity: O(log stamps); with a quota also O(holders).
        """
        holds = self._used if hold.credits else self._unused
        holds.discard(hold, hold.last_seen_ns)
        hold.last_seen_ns = seen_ns
        hold.order = order
        holds.add(hold, seen_ns)
        self._listener(seen_ns)
        if self._newest is not None:
            self._follow(hold.run)

    def reorder(self, hold: Hold, order: int) -> None:
        """Change a hold's place among those of its age.

        Complexity: O(1), or O(log holds) of its age.
        """
        holds = self._used if hold.credits else self._unused
        holds.discard(hold, hold.last_seen_ns)
        hold.order = order
        holds.add(hold, hold.last_seen_ns)
        if self._newest is not None:
            self._follow(hold.run)

    def credit(self, hold: Hold, uses: int) -> None:
        """Set a hold's use count.

        Complexity: O(1), or O(log stamps) between used and unused.
        """
        if bool(hold.credits) == bool(uses):
            hold.credits = uses
            return
        (self._used if hold.credits else self._unused).discard(hold, hold.last_seen_ns)
        hold.credits = uses
        (self._used if uses else self._unused).add(hold, hold.last_seen_ns)
        self._listener(hold.last_seen_ns)

    def used(self) -> list[Hold]:
        """Return the holds with a use count.

        Complexity: O(their number).
        """
        return self._used.items()

    def oldest(self) -> Hold | None:
        """Return the oldest hold, used or not.

        Complexity: O(log stamps).
        """
        unused_ns, used_ns = self._unused.oldest_ns(), self._used.oldest_ns()
        if used_ns is None or (unused_ns is not None and unused_ns <= used_ns):
            return self._unused.oldest()
        return self._used.oldest()

    def victim(self, algorithm: EvictionAlgorithm) -> Hold | None:
        """Return the hold the cap takes from first; under LFU only one never used.

        Complexity: O(log stamps).
        """
        return self._unused.oldest() if algorithm is EvictionAlgorithm.LFU else self.oldest()

    def follow_runs_slices(self, slice_runs: int) -> Iterator[None]:
        """Start ordering runs by their newest hold, for a quota, yielding between slices.

        What changes meanwhile is followed as it changes, and it may be done twice at a time.

        Complexity: O(runs log runs).
        """
        if self._newest is None:
            self._newest = AgeOrder(attrgetter("newest_order"))
            self._epoch += 1
        runs = list(dict.fromkeys(hold.run for hold in self.holds()))
        for done, run in enumerate(runs, start=1):
            self._follow(run)
            if done % slice_runs == 0:
                yield
        self.follows_runs = self._newest is not None

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

    def _follow(self, run: Run) -> None:
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
        return self._unused.items() + self._used.items()

    def runs(self) -> list[Run]:
        """Return every ordered run, for checks.

        Complexity: O(runs).
        """
        return self._newest.items() if self._newest is not None else []
