"""Bound the label values that clients control, so that nobody can fill a metrics store."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

OTHER: Final = "other"
"""The label that all values beyond the bound share."""


class BoundedLabels:
    """Gives known values a label of their own, the first *labels_max* of them.

    Args:
        labels_max: Most values with their own label.
        is_known: Whether a value may have one at all.
    """

    __slots__ = ("_is_known", "_labels_max", "_own")

    def __init__(self, labels_max: int, is_known: Callable[[str], bool]) -> None:
        self._labels_max = labels_max
        self._is_known = is_known
        self._own: set[str] = set()

    def label_of(self, value: str) -> str:
        """Return *value* itself or ``other``; an answer other than ``other`` never changes."""
        if value in self._own:
            return value
        if len(self._own) < self._labels_max and self._is_known(value):
            self._own.add(value)
            return value
        return OTHER

    def fold(self, numbers: Mapping[str, int]) -> dict[str, int]:
        """Return *numbers* by label; those that share one are added up."""
        return add_up((self.label_of(value), number) for value, number in numbers.items())


def add_up(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the sum of numbers per name."""
    sums: dict[str, int] = {}
    for name, number in pairs:
        sums[name] = sums.get(name, 0) + number
    return sums
