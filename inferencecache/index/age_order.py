"""Things ordered by when they were last seen, oldest first.

Worked example, with items named by their key::

    add(1, 10)  add(2, 10)  add(3, 30)      10: [1 2]   30: [3]
    oldest() is 2                           among equals the largest key comes first
    discard(2, 10)  add(2, 40)              10: [1]     30: [3]     40: [2]

Keys say what was reported after what, and how deep: blocks of one report have growing keys from the
head of the chain, so its deepest part goes before what it depends on.

Theory of operation: stamps that only grow need no sorting, so they stand in a linked map in the
order they came. A stamp older than the newest, and not among those, goes to a sorted map. The
oldest is the older of the two heads. Equal stamps share a bucket: a plain map for as long as items
come in the order of their keys, which reports do; once they did not, and the bucket is the oldest,
a sorted list.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from sortedcontainers import SortedDict, SortedKeyList

T = TypeVar("T")


class _Bucket(Generic[T]):
    """Items of one stamp, by growing key."""

    __slots__ = ("_is_ordered", "_key", "_last_key", "_ordered", "_sorted")

    def __init__(self, key: Callable[[T], int]) -> None:
        self._key = key
        self._ordered: dict[T, None] = {}
        self._last_key: int | None = None
        self._is_ordered = True
        self._sorted: SortedKeyList[T, int] | None = None

    def __len__(self) -> int:
        return len(self._ordered) if self._sorted is None else len(self._sorted)

    def add(self, item: T) -> None:
        if self._sorted is not None:
            self._sorted.add(item)
            return
        key = self._key(item)
        if self._last_key is not None and key < self._last_key:
            self._is_ordered = False
        else:
            self._last_key = key
        self._ordered[item] = None

    def discard(self, item: T) -> None:
        if self._sorted is not None:
            self._sorted.remove(item)
        else:
            del self._ordered[item]

    def last(self) -> T:
        """Return the item with the largest key."""
        if self._sorted is None and not self._is_ordered:
            self._sorted = SortedKeyList(self._ordered, key=self._key)
            self._ordered = {}
        if self._sorted is not None:
            item: T = self._sorted[-1]
            return item
        # Taking the last item out and putting it back keeps the order and, unlike reading it
        # through reversed(), never walks again over slots that deletions left empty.
        item, _ = self._ordered.popitem()
        self._ordered[item] = None
        return item

    def items(self) -> Iterable[T]:
        return self._ordered if self._sorted is None else self._sorted


class AgeOrder(Generic[T]):
    """An order of hashable items by nanosecond stamps that may be equal, old or out of order.

    Args:
        key: Ranks items of equal age; the largest goes first. It must not change while an item is
            in. Items of equal keys go in any order, but always in the same.
    """

    __slots__ = ("_growing", "_key", "_late", "_newest_ns")

    def __init__(self, key: Callable[[T], int]) -> None:
        self._key = key
        self._growing: OrderedDict[int, _Bucket[T]] = OrderedDict()
        self._late: SortedDict[int, _Bucket[T]] = SortedDict()
        self._newest_ns: int | None = None

    def __bool__(self) -> bool:
        return bool(self._growing or self._late)

    def add(self, item: T, seen_ns: int) -> None:
        """Put *item* in at *seen_ns*; it must not be in.

        Complexity: O(1) for a stamp that is new or present, O(log stamps) for an old one; O(log
        items of that stamp) once they came out of order.
        """
        if self._newest_ns is None or seen_ns > self._newest_ns:
            self._newest_ns = seen_ns
            bucket = self._growing[seen_ns] = _Bucket(self._key)
        else:
            found = self._growing.get(seen_ns) or self._late.get(seen_ns)
            if found is None:
                found = self._late[seen_ns] = _Bucket(self._key)
            bucket = found
        bucket.add(item)

    def discard(self, item: T, seen_ns: int) -> None:
        """Take *item* out, which was added at *seen_ns*.

        Complexity: As for :meth:`add`.
        """
        stamps = self._growing if seen_ns in self._growing else self._late
        bucket = stamps[seen_ns]
        bucket.discard(item)
        if not bucket:
            del stamps[seen_ns]

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

        Complexity: O(log stamps), amortised; once per stamp O(n log n) of its n items, if they
        came out of order.
        """
        seen_ns = self.oldest_ns()
        if seen_ns is None:
            return None
        return (self._growing.get(seen_ns) or self._late[seen_ns]).last()

    def items(self) -> list[T]:
        """Return all items, those with growing stamps first.

        Complexity: O(items).
        """
        orders = (self._growing, self._late)
        return [item for order in orders for bucket in order.values() for item in bucket.items()]
