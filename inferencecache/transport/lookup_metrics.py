"""Count lookups: the one place in the metrics that every request pays for.

So a lookup only notes what is to be counted; the counting is done for many notes at once, by when
its code is in the cache.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from inferencecache.transport.metric_catalog import LOOKUP_CALLS, LOOKUP_LATENCY
from inferencecache.transport.metric_cells import Durations, Family, LabelValues, Spread
from inferencecache.transport.metric_labels import BoundedLabels
from inferencecache.types import ReasonCode

_NOTES_MAX: Final = 256
"""Lookups noted before they are counted."""


class _ModelSeries:
    """The numbers of one model label."""

    __slots__ = ("calls", "durations")

    def __init__(self) -> None:
        self.calls: defaultdict[tuple[ReasonCode, bool], int] = defaultdict(int)
        self.durations = Durations(LOOKUP_LATENCY.buckets_seconds)


class LookupMetrics:
    """Calls by model, reason and use, and their latency by model.

    Args:
        labels: Decides which models get a label of their own.
    """

    __slots__ = ("_by_label", "_by_model", "_labels", "_notes")

    def __init__(self, labels: BoundedLabels) -> None:
        self._labels = labels
        self._by_label: dict[str, _ModelSeries] = {}
        self._by_model: dict[str, _ModelSeries] = {}
        self._notes: list[tuple[_ModelSeries, ReasonCode, bool, int]] = []

    def lookup_finished(
        self, model_id: str, reason_code: ReasonCode, duration_ns: int, *, hint_used: bool
    ) -> None:
        """Count one lookup.

        Args:
            model_id: The model as the client sent it.
            reason_code: Why it was answered as it was.
            duration_ns: Time it took, in nanoseconds, >= 0.
            hint_used: Whether the answer names a replica.
        """
        series = self._by_model.get(model_id)
        if series is None:
            series = self._series_of(model_id)
        self._notes.append((series, reason_code, hint_used, duration_ns))
        if len(self._notes) >= _NOTES_MAX:
            self._count()

    def forget(self, labels: Iterable[str]) -> None:
        """Drop the series of models that have no label of their own any more."""
        for label in labels:
            self._by_label.pop(label, None)
            self._by_model.pop(label, None)

    def families(self) -> list[Family]:
        """Return a copy of the numbers."""
        self._count()
        calls: dict[LabelValues, float] = {
            (label, reason.value, "true" if hint_used else "false"): count
            for label, series in self._by_label.items()
            for (reason, hint_used), count in series.calls.items()
        }
        spreads: dict[LabelValues, Spread] = {
            (label,): series.durations.spread() for label, series in self._by_label.items()
        }
        return [Family(LOOKUP_CALLS, numbers=calls), Family(LOOKUP_LATENCY, spreads=spreads)]

    def _count(self) -> None:
        """Count what has been noted."""
        for series, reason_code, hint_used, duration_ns in self._notes:
            series.calls[reason_code, hint_used] += 1
            series.durations.observe(duration_ns)
        self._notes.clear()

    def _series_of(self, model_id: str) -> _ModelSeries:
        """Return the series of a model that is not remembered; remember it if it has its own.

        A model without its own label is asked for again each time, because it may earn one.
        """
        label = self._labels.label_of(model_id)
        series = self._by_label.get(label)
        if series is None:
            series = self._by_label[label] = _ModelSeries()
        if label == model_id:
            self._by_model[model_id] = series
        return series
