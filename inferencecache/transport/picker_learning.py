"""Count what callers report of first tokens and of the gaps between tokens."""

from collections.abc import Set as AbstractSet

from inferencecache.clock import NS_PER_MS
from inferencecache.transport import picker_catalog as catalog
from inferencecache.transport.metric_cells import Durations, Family, LabelValues, Spread
from inferencecache.transport.metric_labels import OTHER


class ReportedLearning:
    """Adds up times by candidate.

    Args:
        labels_max: Most candidates with numbers of their own; all others share theirs.
    """

    def __init__(self, labels_max: int) -> None:
        self._labels_max = labels_max
        self._errors = Durations(catalog.TTFT_ERROR.buckets_seconds)
        self._gaps: dict[str, list[int]] = {}

    def first_token_took(self, expected_ms: float, observed_ms: float) -> None:
        """Count by how much a time was foreseen wrongly."""
        self._errors.observe(round(abs(expected_ms - observed_ms) * NS_PER_MS))

    def gaps_between_tokens(self, candidate: str, counts: tuple[int, ...]) -> None:
        """Add the gaps of one answer to those of its candidate, bucket by bucket."""
        is_own = candidate in self._gaps or len(self._gaps) < self._labels_max
        label = candidate if is_own else OTHER
        sums = self._gaps.get(label)
        if sums is None:
            self._gaps[label] = list(counts)
        else:
            for bucket, count in enumerate(counts):
                sums[bucket] += count

    def retain(self, names: AbstractSet[str]) -> None:
        """Forget candidates but *names*, which leaves room for others."""
        self._gaps = {
            name: counts for name, counts in self._gaps.items() if name in names or name == OTHER
        }

    def families(self) -> list[Family]:
        """Return a copy of all numbers; callers count gaps and do not add them up."""
        gaps: dict[LabelValues, Spread] = {
            (name,): Spread(tuple(counts), None) for name, counts in self._gaps.items()
        }
        return [
            Family(catalog.TTFT_ERROR, spreads={(): self._errors.spread()}),
            Family(catalog.GAPS, spreads=gaps),
        ]
