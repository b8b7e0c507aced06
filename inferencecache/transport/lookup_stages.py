"""Time what surrounds a lookup's decision: reading the request, writing the answer.

One call in so many is measured: two looks at the clock for each would be noticed.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from inferencecache.clock import Clock
from inferencecache.transport.metric_catalog import MetricKind, MetricSpec
from inferencecache.transport.metric_cells import Durations, Family, LabelValues, Spread

ArgumentT = TypeVar("ArgumentT")
ResultT = TypeVar("ResultT")

LOOKUP_STAGES: Final = MetricSpec(
    name="inferencecache_lookup_route_stage_seconds",
    kind=MetricKind.HISTOGRAM,
    labels=("stage",),
    buckets_seconds=(0.000005, 0.00001, 0.000025, 0.0001, 0.00025, 0.001, 0.005, 0.025),
    help="Time to read a LookupRoute request and to write its answer, measured for a sample; the "
    "decision between them is in inferencecache_lookup_route_latency_seconds.",
)

STAGE_CATALOG: Final = (LOOKUP_STAGES,)


class LookupStages:
    """Measures the stages of a sample of lookups.

    Args:
        clock: Measures.
        sample_interval: One lookup in so many is measured, >= 1.
    """

    __slots__ = ("_clock", "_countdown", "_durations", "_interval")

    def __init__(self, clock: Clock, sample_interval: int) -> None:
        self._clock = clock
        self._interval = self._countdown = sample_interval
        self._durations: dict[str, Durations] = {}

    def is_due(self) -> bool:
        """Count one lookup and tell whether it is to be measured."""
        self._countdown -= 1
        if self._countdown:
            return False
        self._countdown = self._interval
        return True

    def timed(
        self, stage: str, work: Callable[[ArgumentT], ResultT], argument: ArgumentT
    ) -> ResultT:
        """Return what *work* makes of *argument*, measured.

        Args:
            stage: Its label.
            work: What is measured.
            argument: What it works on.
        """
        durations = self._durations.get(stage)
        if durations is None:
            durations = self._durations[stage] = Durations(LOOKUP_STAGES.buckets_seconds)
        started_ns = self._clock.monotonic_ns()
        result = work(argument)
        durations.observe(self._clock.monotonic_ns() - started_ns)
        return result

    def families(self) -> list[Family]:
        """Return a copy of the numbers."""
        spreads: dict[LabelValues, Spread] = {
            (stage,): cell.spread() for stage, cell in self._durations.items()
        }
        return [Family(LOOKUP_STAGES, spreads=spreads)]
