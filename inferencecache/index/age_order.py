"""Things ordered by when they were last seen, oldest first.

Worked example::

    add(a, 10)  add(b, 10)  add(c, 30)      10: [a b]   30: [c]
    oldest() is b                           among equals the last one added comes first
    discard(b, 10)  add(b, 40)              10: [a]     30: [c]     40: [b]

Equal ages fall together in one bucket, and the last one added leaves first: blocks of one report
are added from the head of the chain, so its deepest part goes before what it depends on.

Theory of operation: stamps that only grow need no sorting, so they stand in a linked map in the
order they came. A stamp older than the newest, and not among those, goes to a sorted map. The
oldest is the older of the two heads.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

from sortedcontainers import SortedDict

T = TypeVar("T")


class AgeOrder(Generic[T]):
    """An order of hashable items by nanosecond stamps that may be equal, old or out of order."""

    __slots__ = ("_growing", "_late", "_newest_ns")

    def __init__(self) -> None:
        self._growing: OrderedDict[int, dict[T, None]] = OrderedDict()
        self._late: SortedDict[int, dict[T, None]] = SortedDict()
        self._newest_ns: int | None = None

    def __bool__(self) -> bool:
        return bool(self._growing or self._late)

    def add(self, item: T, seen_ns: int) -> None:
        """Put *item* in at *seen_ns*; it must not be in.

        Complexity: O(1) for a stamp that is new or present, O(log stamps) for an old one.
        """
        if self._newest_ns is None or seen_ns > self._newest_ns:
            self._newest_ns = seen_ns
            self._growing[seen_ns] = {item: None}
            return
        bucket = self._growing.get(seen_ns)
        if bucket is None:
            bucket = self._late.get(seen_ns)
        if bucket is None:
            self._late[seen_ns] = {item: None}
        else:
            bucket[item] = None

    def discard(self, item: T, seen_ns: int) -> None:
        """Take *item* out, which was added at *seen_ns*.

        Complexity: O(1), or O(log stamps) for the last item of an old stamp.
        """
        bucket = self._growing.get(seen_ns)
        if bucket is not None:
            del bucket[item]
            if not bucket:
                del self._growing[seen_ns]
            return
        bucket = self._late[seen_ns]
        del bucket[item]
        if not bucket:
            del self._late[seen_ns]

    def oldest_ns(self) -> int | None:
        """Return the smallest stamp, None when empty.

        Complexity: O(log stamps).
        """
        growing = next(iter(self._growing), None)
        if not self._late:
            return growing
        late: int = self._late.peekitem(0)[0]
        return late if growing is None or late < growing else growing

    def oldest(self) -> T | None:
        """Return the item that goes first, None when empty.

        Complexity: O(log stamps), amortised.
        """
        seen_ns = self.oldest_ns()
        if seen_ns is None:
            return None
        bucket = self._growing.get(seen_ns) or self._late[seen_ns]
        # Taking the last item out and putting it back keeps the order and, unlike reading it
        # through reversed(), never walks again over slots that deletions left empty.
        item, _ = bucket.popitem()
        bucket[item] = None
        return item

    def items(self) -> list[T]:
        """Return all items, those with growing stamps first.

        Complexity: O(items).
        """
        orders = (self._growing, self._late)
        return [item for order in orders for bucket in order.values() for item in bucket]
