"""Things ordered by when they were last seen, oldest first.

Worked example::

    add(a, 10)  add(b, 10)  add(c, 30)      10: [a b]   30: [c]
    oldest() is b                           among equals the last one added comes first
    discard(b, 10)  add(b, 40)              10: [a]     30: [c]     40: [b]

Equal ages fall together in one bucket, and the last one added leaves first: blocks of one report
are added from the head of the chain, so its deepest part goes before what it depends on.
"""

from typing import Generic, TypeVar

from sortedcontainers import SortedDict

T = TypeVar("T")


class AgeOrder(Generic[T]):
    """An order of hashable items by nanosecond stamps that may be equal, old or out of order."""

    __slots__ = ("_buckets",)

    def __init__(self) -> None:
        self._buckets: SortedDict[int, dict[T, None]] = SortedDict()

    def __bool__(self) -> bool:
        return bool(self._buckets)

    def add(self, item: T, seen_ns: int) -> None:
        """Put *item* in at *seen_ns*; it must not be in.

        Complexity: O(1) for a stamp already present, O(log stamps) otherwise.
        """
        bucket = self._buckets.get(seen_ns)
        if bucket is None:
            self._buckets[seen_ns] = {item: None}
        else:
            bucket[item] = None

    def discard(self, item: T, seen_ns: int) -> None:
        """Take *item* out, which was added at *seen_ns*.

        Complexity: O(1) while others share the stamp, O(log stamps) otherwise.
        """
        bucket = self._buckets[seen_ns]
        del bucket[item]
        if not bucket:
            del self._buckets[seen_ns]

    def oldest_ns(self) -> int | None:
        """Return the smallest stamp, None when empty.

        Complexity: O(log stamps).
        """
        return self._buckets.peekitem(0)[0] if self._buckets else None

    def oldest(self) -> T | None:
        """Return the item that goes first, None when empty.

        Complexity: O(log stamps), amortised.
        """
        if not self._buckets:
            return None
        _, bucket = self._buckets.peekitem(0)
        # Taking the last item out and putting it back keeps the order and, unlike reading it
        # through reversed(), never walks again over slots that deletions left empty.
        item, _ = bucket.popitem()
        bucket[item] = None
        return item

    def items(self) -> list[T]:
        """Return all items, oldest stamp first.

        Complexity: O(items).
        """
        return [item for bucket in self._buckets.values() for item in bucket]
