"""Bound the label values that clients control, so that nobody can fill a metrics store.

Theory of operation
-------------------
So many values have a label of their own; all others share ``other``. First come, first served, and
a value keeps its label while it has anything. One that has had nothing for a while keeps it too,
shown as 0, until another value waits for it: then the label goes over, and its series end.

A series never goes down because a value got or lost a label: what was counted under ``other``
stays there.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from inferencecache.clock import Clock
from inferencecache.settings.metrics import MetricsSettings

OTHER: Final = "other"
"""The label that all values beyond the bound share."""


class BoundedLabels:
    """Gives values a label of their own, so many at a time.

    Args:
        settings: Most values with their own label, and how long one may have nothing.
        is_known: Whether a value may have one at all.
        clock: Tells how long a value has had nothing.
    """

    __slots__ = ("_clock", "_idle_ns", "_is_known", "_labels_max", "_own")

    def __init__(
        self, settings: MetricsSettings, is_known: Callable[[str], bool], clock: Clock
    ) -> None:
        self._labels_max = settings.labels_max
        self._idle_ns = settings.label_idle_ns
        self._is_known = is_known
        self._clock = clock
        self._own: dict[str, int | None] = {}

    def label_of(self, value: str) -> str:
        """Return *value* itself or ``other``."""
        if value in self._own:
            return value
        if len(self._own) < self._labels_max and self._is_known(value):
            self._own[value] = None
            return value
        return OTHER

    def make_room(self, numbers: Mapping[str, int]) -> list[str]:
        """Take labels back from values long without anything, for values with something and none.

        No more are taken than are wanted, those first that have had nothing the longest. To be
        called once per scrape.

        Args:
            numbers: What each value has; one that is not in it has nothing.

        Returns:
            The labels taken back; what was counted under them is to be forgotten.

        Complexity: O(values log values).
        """
        now_ns = self._clock.monotonic_ns()
        for value, since_ns in self._own.items():
            if numbers.get(value):
                self._own[value] = None
            elif since_ns is None:
                self._own[value] = now_ns
        waiting = [value for value, number in numbers.items() if number and value not in self._own]
        wanted = min(len(self._own) + len(waiting) - self._labels_max, self._labels_max)
        taken = self._longest_idle(now_ns)[: max(wanted, 0)]
        for value in taken:
            del self._own[value]
        for value in waiting[: self._labels_max - len(self._own)]:
            self._own[value] = None
        return taken

    def fold(self, numbers: Mapping[str, int]) -> dict[str, int]:
        """Return *numbers* by label; those that share one are added up, absent ones are 0."""
        sums = dict.fromkeys(self._own, 0)
        for value, number in numbers.items():
            label = self.label_of(value)
            sums[label] = sums.get(label, 0) + number
        return sums

    def _longest_idle(self, now_ns: int) -> list[str]:
        """Return the values that may lose their label, the one first that should."""
        idle = [
            (since_ns, value)
            for value, since_ns in self._own.items()
            if since_ns is not None and now_ns - since_ns >= self._idle_ns
        ]
        return [value for _, value in sorted(idle)]


class LabelledTotals:
    """Adds up by label what growing totals of values grow by, so that no series goes down.

    Args:
        labels: Decides which values get a label of their own.
    """

    __slots__ = ("_labels", "_seen", "_sums")

    def __init__(self, labels: BoundedLabels) -> None:
        self._labels = labels
        self._seen: dict[str, int] = {}
        self._sums: dict[str, int] = {}

    def add_up(self, totals: Mapping[str, int]) -> dict[str, int]:
        """Return the sums by label, after *totals*.

        Args:
            totals: All there is; a value that was forgotten in between begins again at 0.

        Complexity: O(values).
        """
        for value, total in totals.items():
            seen = self._seen.get(value, 0)
            if total != seen:
                label = self._labels.label_of(value)
                grown = total - seen if total > seen else total
                self._sums[label] = self._sums.get(label, 0) + grown
        self._seen = dict(totals)
        return dict(self._sums)

    def forget(self, labels: Iterable[str]) -> None:
        """Drop the sums of labels that were taken back."""
        for label in labels:
            self._sums.pop(label, None)
