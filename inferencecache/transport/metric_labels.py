"""Bound the label values that clients control, so that nobody can fill a metrics store."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

OTHER: Final = "other"
"""The label that all values beyond the bound share."""


class BoundedLabels:
    """Gives known values a label of their own, *labels_max* of them at a time.

    First come, first served; a value keeps its label until :meth:`make_room` takes it back.

    Args:
        labels_max: Most values with their own label.
        is_known: Whether a value may have one at all.
    """

    __slots__ = ("_drained", "_is_known", "_labels_max", "_own")

    def __init__(self, labels_max: int, is_known: Callable[[str], bool]) -> None:
        self._labels_max = labels_max
        self._is_known = is_known
        self._own: set[str] = set()
        self._drained: set[str] = set()

    def label_of(self, value: str) -> str:
        """Return *value* itself or ``other``."""
        if value in self._own:
            return value
        if len(self._own) < self._labels_max and self._is_known(value):
            self._own.add(value)
            return value
        return OTHER

    def make_room(self, numbers: Mapping[str, int]) -> set[str]:
        """Take labels back from values without anything, for values with something and no label.

        No more are taken than are wanted, and none before it was found drained twice: called once
        per scrape, the page has then shown that there is nothing.

        Args:
            numbers: What each known value has.

        Returns:
            The labels taken back; what was counted under them is to be forgotten.

        Complexity: O(values).
        """
        waiting = [value for value, number in numbers.items() if number and value not in self._own]
        wanted = min(len(self._own) + len(waiting) - self._labels_max, self._labels_max)
        drained = {value for value in self._own if not numbers.get(value)}
        taken = set(sorted(drained & self._drained)[: max(wanted, 0)])
        self._drained = drained - taken
        self._own -= taken
        self._own.update(waiting[: self._labels_max - len(self._own)])
        return taken

    def fold(self, numbers: Mapping[str, int]) -> dict[str, int]:
        """Return *numbers* by label; those that share one are added up."""
        return add_up((self.label_of(value), number) for value, number in numbers.items())


def add_up(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the sum of numbers per name."""
    sums: dict[str, int] = {}
    for name, number in pairs:
        sums[name] = sums.get(name, 0) + number
    return sums
