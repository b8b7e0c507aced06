"""What the picker counts."""

from collections.abc import Iterable
from dataclasses import dataclass

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.errors import InvalidRequestError
from inferencecache.picker.bodies import BodyState
from inferencecache.picker.choice import Outcome, QosClass
from inferencecache.picker.choosing import FleetChooser, Limits, Suppression
from inferencecache.picker.decisions import ReportFlaw
from inferencecache.picker.faults import BudgetError, DrainingError, IdleUploadError, LengthError
from inferencecache.picker.load import LoadTable
from inferencecache.service.pick import PickPlane
from inferencecache.settings.metrics import MetricsSettings
from inferencecache.transport import picker_catalog as catalog
from inferencecache.transport.metric_cells import Counts, Durations, Family, LabelValues
from inferencecache.transport.metric_labels import OTHER, BoundedLabels
from inferencecache.transport.picker_learning import ReportedLearning
from inferencecache.transport.picker_scrape import EngineScrapes
from inferencecache.transport.picker_suppression import ReportedSuppressions
from inferencecache.transport.picker_waiting import DeferredRequests

_PUSH_FAILURES = {
    LengthError: "length",
    InvalidRequestError: "invalid",
    BudgetError: "budget",
    IdleUploadError: "idle",
    DrainingError: "draining",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerMetricsParts:
    """What is read at each scrape.

    Attributes:
        plane: Bodies and decisions.
        chooser: What it has met.
        suppression: Who is left alone.
        suppressions: How often that began.
        limits: What tenants have asked for.
        learning: What was learnt from reports.
        loads: What each destination has to do.
        scrapes: What engines say of it.
        room: Who waits.
        clock: The time of day.
        settings: Bounds of the page.
    """

    plane: PickPlane
    chooser: FleetChooser
    suppression: Suppression
    suppressions: ReportedSuppressions
    limits: Limits
    learning: ReportedLearning
    loads: LoadTable
    scrapes: EngineScrapes
    room: DeferredRequests
    clock: Clock
    settings: MetricsSettings


class PickerMetrics:
    """Counts calls, and reads the gauges at each scrape.

    Args:
        parts: What is read.
    """

    def __init__(self, parts: PickerMetricsParts) -> None:
        self._parts = parts
        self._plane = parts.plane
        self._labels = BoundedLabels(parts.settings, lambda _: True, parts.clock)
        self._tiers = BoundedLabels(parts.settings, lambda _: True, parts.clock)
        self._pushes = Counts()
        self._picks = Counts()
        self._latency = Durations(catalog.PICK_LATENCY.buckets_seconds)
        self._aborts = Counts()
        self._unknown = Counts()
        self._flaws = Counts()

    def push_ended(self, result: str) -> None:
        """Count an upload that ended; *result* is ``ok`` or see :func:`push_result`."""
        self._pushes.add((result,))

    def picked(self, outcome: Outcome, tier: str, qos: QosClass, duration_ns: int) -> None:
        """Count an answer."""
        self._picks.add((outcome, self._tiers.label_of(tier), qos))
        self._latency.observe(duration_ns)

    def aborted(self, reason: str) -> None:
        """Count an Abort."""
        self._aborts.add((reason,))

    def reported(self, method: str, *, is_known: bool) -> None:
        """Count a report if it changed nothing."""
        if not is_known:
            self._unknown.add((method,))

    def flawed(self, flaws: Iterable[ReportFlaw]) -> None:
        """Count what of a report could not be used."""
        for flaw in flaws:
            self._flaws.add((flaw.value,))

    def families(self) -> list[Family]:
        """Return a copy of all numbers."""
        bodies, decisions = self._plane.bodies, self._plane.decisions
        under_way = dict(decisions.in_flight)
        self._labels.make_room(under_way)
        in_flight = self._labels.fold(under_way)
        loads = self._parts.loads
        queued = self._labels.fold({name: load.prefill_tokens for name, load in loads})
        return [
            Family(catalog.BODIES, {(): len(bodies)}),
            Family(catalog.BUFFERED_BYTES, {(): bodies.buffered_bytes}),
            Family(catalog.DECISIONS, {(): len(decisions)}),
            Family(catalog.IN_FLIGHT, {(name,): count for name, count in in_flight.items()}),
            Family(catalog.PUSHES, self._pushes.rows()),
            Family(catalog.PICKS, self._picks.rows()),
            Family(catalog.PICK_LATENCY, spreads={(): self._latency.spread()}),
            Family(catalog.ABORTS, self._aborts.rows()),
            Family(catalog.UNKNOWN_REPORTS, self._unknown.rows()),
            Family(catalog.BAD_REPORTS, self._flaws.rows()),
            Family(catalog.EXPIRED, self._expired()),
            Family(catalog.SUPPRESSED, self._suppressed()),
            Family(catalog.SUPPRESSIONS, self._parts.suppressions.rows()),
            Family(catalog.LIMITED, {(): len(self._parts.limits)}),
            Family(catalog.SKEWED_PICKS, {(): self._parts.chooser.skewed_picks}),
            Family(catalog.QUEUED_TOKENS, {(name,): count for name, count in queued.items()}),
            Family(catalog.AGED, {(): loads.aged}),
            *self._parts.learning.families(),
            *self._parts.scrapes.families(),
            *self._parts.room.families(),
        ]

    def _suppressed(self) -> dict[LabelValues, float]:
        """Return when each suppression ends; beyond the bound the last end of all others."""
        clock = self._parts.clock
        now_ns = clock.now_ns()
        ends: dict[LabelValues, float] = {}
        for subject, left_ns in self._parts.suppression.remaining_ns(clock.monotonic_ns()).items():
            name = str(subject) if len(ends) < self._parts.settings.labels_max else OTHER
            end_s = (now_ns + left_ns) / NS_PER_S
            ends[name,] = max(end_s, ends.get((name,), 0.0))
        return ends

    def _expired(self) -> dict[tuple[str, ...], float]:
        bodies, decisions = self._plane.bodies, self._plane.decisions
        stages = (BodyState.UPLOADING, BodyState.COMPLETE, BodyState.PICKED)
        return {
            **{(state.value,): bodies.expired[state] for state in stages},
            ("decision",): decisions.expired,
        }


def push_result(error: BaseException) -> str:
    """Return in one word why an upload ended in *error*."""
    for kind, word in _PUSH_FAILURES.items():
        if isinstance(error, kind):
            return word
    return "reset"
