"""Things ordered by when they were last seen, oldest first.

Worked example, with items named by their key::

    add(1, 10)  add(2, 10)  add(3, 30)      10: [1 2]   30: [3]
    oldest() is 2                           among equals the largest key comes first
    discard(2, 10)  add(2, 40)              10: [1]     30: [3]     40: [2]

Keys say what was reported after what, and how deep: blocks of one report have growing keys from the
head of the chain, so its deepest part goes before what it depends on.

Theory of operation: stamps that only grow need no sorting, so they stand in a map in the order they
came. A stamp older than the newest, and not among those, goes to a sorted list. The oldest is the
older of the two heads. Equal stamps share a bucket: a plain map for as long as items come in the
order of their keys, which reports do; once they did not, and the bucket is the oldest, or once they
are many, a sorted list. Nothing here is rebuilt in one step that grows with the number of items.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final, Generic, TypeVar

from sortedcontainers import SortedKeyList

from inferencecache.index.growing_map import GrowingMap

T = TypeVar("T")

PLAIN_ITEMS_MAX: Final = 4_096
"""Items of one stamp that stand in a plain map."""


class _Bucket(Generic[T]):
    """Items of one stamp, by growing key."""

    __slots__ = ("_is_ordered", "_key", "_last_key", "_ordered", "_sorted", "seen_ns")

    def __init__(self, seen_ns: int, key: Callable[[T], int]) -> None:
        self.seen_ns = seen_ns
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
        if len(self._ordered) > PLAIN_ITEMS_MAX:
            self._sort()

    def discard(self, item: T) -> None:
        if self._sorted is not None:
            self._sorted.remove(item)
        else:
            del self._ordered[item]

    @property
    def is_lone(self) -> bool:
        """Whether it has one item, which stands in a plain map."""
        return len(self._ordered) == 1 and self._sorted is None

    def renew(self, seen_ns: int, key: int) -> None:
        """Take another stamp, and another key of the one item."""
        self.seen_ns = seen_ns
        self._last_key = key
        self._is_ordered = True

    def _sort(self) -> None:
        self._sorted = SortedKeyList(self._ordered, key=self._key)
        self._ordered = {}

    def last(self) -> T:
        """Return the item with the largest key."""
        if self._sorted is None and not self._is_ordered:
            self._sort()
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

    __slots__ = ("_growing", "_key", "_late")

    def __init__(self, key: Callable[[T], int]) -> None:
        self._key = key
        self._growing: GrowingMap[_Bucket[T]] = GrowingMap()
        self._late: SortedKeyList[_Bucket[T], int] | None = None

    def __bool__(self) -> bool:
        return self._first() is not None

    def add(self, item: T, seen_ns: int) -> None:
        """Put *item* in at *seen_ns*; it must not be in.

        Complexity: O(1) for a stamp that is new, O(log stamps) for an old one; O(log items of that
        stamp) once they came out of order or are many.
        """
        growing = self._growing
        if growing.newest is None or seen_ns > growing.newest:
            bucket = _Bucket(seen_ns, self._key)
            growing.append(seen_ns, bucket)
        else:
            found = growing.get(seen_ns) or self._late_bucket(seen_ns)
            if found is None:
                found = _Bucket(seen_ns, self._key)
                if self._late is None:
                    self._late = SortedKeyList(key=attrgetter("seen_ns"))
                self._late.add(found)
            bucket = found
        bucket.add(item)

    def discard(self, item: T, seen_ns: int) -> None:
        """Take *item* out, which was added at *seen_ns*.

        Complexity: As for :meth:`add`.
        """
        bucket = self._growing.get(seen_ns)
        if bucket is not None:
            bucket.discard(item)
            if not bucket:
                self._growing.remove(seen_ns)
            return
        late = self._late_bucket(seen_ns)
        assert late is not None, "what is taken out was put in"
        assert self._late is not None
        late.discard(item)
        if not late:
            self._late.remove(late)

    def advance(self, seen_ns: int, later_ns: int, key: int) -> bool:
        """Give the item of a stamp a later one, if that is easy; else change nothing.

        It is where a stamp has one item and none is as late as the new one, as after most reports.
        Then its bucket goes along, and nothing is made.

        Args:
            seen_ns: The item's stamp.
            later_ns: The new one.
            key: The item's key from now on.

        Returns:
            Whether it was done.

        Complexity: As for :meth:`add`.
        """
        growing = self._growing
        if growing.newest is None or later_ns <= growing.newest:
            return False
        bucket = growing.get(seen_ns)
        if bucket is None or not bucket.is_lone:
            return False
        growing.remove(seen_ns)
        bucket.renew(later_ns, key)
        growing.append(later_ns, bucket)
        return True

    def _late_bucket(self, seen_ns: int) -> _Bucket[T] | None:
        return next(self._late.irange_key(seen_ns, seen_ns), None) if self._late else None

    def _first(self) -> _Bucket[T] | None:
        """Return the bucket of the smallest stamp."""
        growing, late = self._growing.first(), self._late
        if not late:
            return growing
        oldest: _Bucket[T] = late[0]
        return oldest if growing is None or oldest.seen_ns < growing.seen_ns else growing

    def oldest_ns(self) -> int | None:
        """Return the smallest stamp, None when empty.

        Complexity: O(1).
        """
        bucket = self._first()
        return bucket.seen_ns if bucket is not None else None

    def oldest(self) -> T | None:
        """Return the item that goes first, None when empty.

        Complexity: O(log stamps), amortised; once per stamp O(n log n) of its n items, if they
        came out of order while they were few.
        """
        bucket = self._first()
        return bucket.last() if bucket is not None else None

    def items(self) -> list[T]:
        """Return all items, those with growing stamps first.

        Complexity: O(items).
        """
        orders = (self._growing.values(), self._late or ())
        return [item for buckets in orders for bucket in buckets for item in bucket.items()]
