"""Things ordered by when they were last seen, oldest first.

Worked example, with items named by their key::

    add(1, 10)  add(2, 10)  add(3, 30)      10: [1 2]   30: [3]
    oldest() is 2                           among equals the largest key comes first
    discard(2, 10)  add(2, 40)              10: [1]     30: [3]     40: [2]

Keys say what was reported after what, and how deep: blocks of one report have growing keys from the
head of the chain, so its deepest part goes before what it depends on.

Theory of operation: stamps that only grow need no sorting, so they stand in a linked map in the
order they came. A stamp older than the newest, and not among those, goes to a sorted map. The
oldest is the older of the two heads. Equal stamps share a bucket, which is sorted only if items
came out of order, and only once it is the oldest.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from sortedcontainers import SortedDict

T = TypeVar("T")


class _Bucket(Generic[T]):
    """Items of one stamp; *last_key* is None once they may be out of order."""

    __slots__ = ("items", "last_key")

    def __init__(self, item: T, key: int) -> None:
        self.items: dict[T, None] = {item: None}
        self.last_key: int | None = key


class AgeOrder(Generic[T]):
    """An order of hashable items by nanosecond stamps that may be equal, old or out of order.

    Args:
        key: Ranks items of equal age; the largest goes first.
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

        Complexity: O(1) for a stamp that is new or present, O(log stamps) for an old one.
        """
        key = self._key(item)
        if self._newest_ns is None or seen_ns > self._newest_ns:
            self._newest_ns = seen_ns
            self._growing[seen_ns] = _Bucket(item, key)
            return
        bucket = self._growing.get(seen_ns) or self._late.get(seen_ns)
        if bucket is None:
            self._late[seen_ns] = _Bucket(item, key)
            return
        bucket.items[item] = None
        if bucket.last_key is not None:
            bucket.last_key = key if key > bucket.last_key else None

    def discard(self, item: T, seen_ns: int) -> None:
        """Take *item* out, which was added at *seen_ns*.

        Complexity: O(1), or O(log stamps) for the last item of an old stamp.
        """
        stamps = self._growing if seen_ns in self._growing else self._late
        items = stamps[seen_ns].items
        del items[item]
        if not items:
            del stamps[seen_ns]

    def disorder(self, seen_ns: int) -> None:
        """Note that the key of an item at *seen_ns* changed.

        Complexity: O(1).
        """
        bucket = self._growing.get(seen_ns) or self._late[seen_ns]
        bucket.last_key = None

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

        Complexity: O(log stamps), amortised; O(items of that stamp) after they came out of order.
        """
        seen_ns = self.oldest_ns()
        if seen_ns is None:
            return None
        bucket = self._growing.get(seen_ns) or self._late[seen_ns]
        if bucket.last_key is None:
            bucket.items = dict.fromkeys(sorted(bucket.items, key=self._key))
            bucket.last_key = self._key(next(reversed(bucket.items)))
        # Taking the last item out and putting it back keeps the order and, unlike reading it
        # through reversed(), never walks again over slots that deletions left empty.
        item, _ = bucket.items.popitem()
        bucket.items[item] = None
        return item

    def items(self) -> list[T]:
        """Return all items, those with growing stamps first.

        Complexity: O(items).
        """
        orders = (self._growing, self._late)
        return [item for order in orders for bucket in order.values() for item in bucket.items]
