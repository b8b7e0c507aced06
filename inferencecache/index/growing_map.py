"""A map whose keys are added in growing order, in segments, so that it never grows in one big step.

Worked example, with segments of 2 keys::

    append 10, 20, 30, 40, 50     [10 20] [30 40] [50]     a full segment is left as it is
    remove 30, then 40            [10 20] [50]             an empty one goes
    get 20                        bisect the first keys, 10 and 50, then one probe

Source: docs/adr/0002-runs.md.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

V = TypeVar("V")

SEGMENT_KEYS: Final = 4_096
"""Keys of a segment: what bounds the time it takes the interpreter to rebuild one."""


class GrowingMap(Generic[V]):
    """Values by whole-number keys; each key is larger than all that were added before it.

    Attributes:
        newest: The largest key that was ever added, None before the first.
    """

    __slots__ = ("_firsts", "_segments", "newest")

    def __init__(self) -> None:
        self.newest: int | None = None
        self._firsts: list[int] = []
        self._segments: list[OrderedDict[int, V]] = []

    def __bool__(self) -> bool:
        return bool(self._segments)

    def append(self, key: int, value: V) -> None:
        """Add a value under a key larger than :attr:`newest`.

        Complexity: O(1).
        """
        if not self._segments or len(self._segments[-1]) >= SEGMENT_KEYS:
            self._firsts.append(key)
            self._segments.append(OrderedDict())
        self._segments[-1][key] = value
        self.newest = key

    def get(self, key: int) -> V | None:
        """Return the value of *key*, None if it is not there.

        Complexity: O(log segments).
        """
        segments = self._segments
        if len(segments) == 1:
            return segments[0].get(key)
        at = bisect_right(self._firsts, key) - 1
        return segments[at].get(key) if at >= 0 else None

    def remove(self, key: int) -> None:
        """Take out *key*, which is there.

        Complexity: O(log segments), and O(segments) when its segment becomes empty.
        """
        at = bisect_right(self._firsts, key) - 1
        segment = self._segments[at]
        del segment[key]
        if not segment:
            del self._segments[at], self._firsts[at]

    def first(self) -> V | None:
        """Return the value of the smallest key, None when empty.

        Complexity: O(1).
        """
        return next(iter(self._segments[0].values())) if self._segments else None

    def values(self) -> Iterator[V]:
        """Yield the values by growing keys.

        Complexity: O(keys) in all.
        """
        for segment in self._segments:
            yield from segment.values()
