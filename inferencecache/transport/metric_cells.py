"""Where numbers add up between two scrapes: plain dictionaries and lists, no locks.

All writers live on the event loop. A scrape copies the numbers there (``rows``), which is cheap,
and the slow part, making text of them, works on the copy.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from inferencecache.clock import NS_PER_S
from inferencecache.transport.metric_catalog import MetricKind, MetricSpec

LabelValues = tuple[str, ...]


class Spread(NamedTuple):
    """A copy of a histogram's numbers.

    Attributes:
        counts: Observations per bucket, not cumulative; the last is +Inf.
        sum_ns: Their total in nanoseconds; None where nobody knows it, and then neither the total
            nor the count is shown beside the buckets.
    """

    counts: tuple[int, ...]
    sum_ns: int | None


class Counts:
    """Numbers by label values."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: defaultdict[LabelValues, int] = defaultdict(int)

    def add(self, labels: LabelValues = (), amount: int = 1) -> None:
        """Add *amount* to the number under *labels*."""
        self._numbers[labels] += amount

    def retain(self, is_kept: Callable[[LabelValues], bool]) -> None:
        """Forget the numbers of whom *is_kept* denies."""
        for labels in [labels for labels in self._numbers if not is_kept(labels)]:
            del self._numbers[labels]

    def rows(self) -> dict[LabelValues, int]:
        """Return a copy."""
        return dict(self._numbers)


class Durations:
    """One histogram of durations.

    Args:
        buckets_seconds: Upper bounds, rising, without +Inf.
    """

    __slots__ = ("_bounds_ns", "_counts", "_sum_ns")

    def __init__(self, buckets_seconds: tuple[float, ...]) -> None:
        self._bounds_ns: Final = [round(bound * NS_PER_S) for bound in buckets_seconds]
        self._counts = [0] * (len(buckets_seconds) + 1)
        self._sum_ns = 0

    def observe(self, duration_ns: int) -> None:
        """Count one duration."""
        self._counts[bisect_left(self._bounds_ns, duration_ns)] += 1
        self._sum_ns += duration_ns

    def spread(self) -> Spread:
        """Return a copy."""
        return Spread(tuple(self._counts), self._sum_ns)


class Family(NamedTuple):
    """The numbers of one metric at one moment.

    Attributes:
        spec: Which metric.
        numbers: Of a counter or gauge, by label values.
        spreads: Of a histogram, by label values.
    """

    spec: MetricSpec
    numbers: Mapping[LabelValues, float] = {}
    spreads: Mapping[LabelValues, Spread] = {}


def to_prometheus(family: Family) -> Metric:
    """Return *family* in the form that ``prometheus_client`` writes out."""
    spec = family.spec
    if spec.kind is MetricKind.HISTOGRAM:
        histogram = HistogramMetricFamily(spec.name, spec.help, labels=spec.labels)
        for labels, spread in family.spreads.items():
            sum_s = None if spread.sum_ns is None else spread.sum_ns / NS_PER_S
            histogram.add_metric(labels, list(_cumulative(spec, spread)), sum_value=sum_s)
        return histogram
    kind = CounterMetricFamily if spec.kind is MetricKind.COUNTER else GaugeMetricFamily
    simple = kind(spec.name, spec.help, labels=spec.labels)
    for labels, number in family.numbers.items():
        simple.add_metric(labels, number)
    return simple


def _cumulative(spec: MetricSpec, spread: Spread) -> Iterator[tuple[str, float]]:
    total = 0
    names = [*map(str, spec.buckets_seconds), "+Inf"]
    for name, count in zip(names, spread.counts, strict=True):
        total += count
        yield name, total
