"""What the picker counts."""

from inferencecache.clock import Clock
from inferencecache.errors import InvalidRequestError
from inferencecache.picker.bodies import BodyState
from inferencecache.picker.choice import Outcome, QosClass
from inferencecache.picker.faults import BudgetError, DrainingError, IdleUploadError, LengthError
from inferencecache.service.pick import PickPlane
from inferencecache.settings.metrics import MetricsSettings
from inferencecache.transport import picker_catalog as catalog
from inferencecache.transport.metric_cells import Counts, Durations, Family
from inferencecache.transport.metric_labels import BoundedLabels

_PUSH_FAILURES = {
    LengthError: "length",
    InvalidRequestError: "invalid",
    BudgetError: "budget",
    IdleUploadError: "idle",
    DrainingError: "draining",
}


class PickerMetrics:
    """Counts calls, and reads the gauges at each scrape.

    Args:
        plane: Read at each scrape.
        settings: How many destinations have a label of their own, and how long.
        clock: Tells how long a destination has been idle.
    """

    def __init__(self, plane: PickPlane, settings: MetricsSettings, clock: Clock) -> None:
        self._plane = plane
        self._labels = BoundedLabels(settings, lambda _: True, clock)
        self._pushes = Counts()
        self._picks = Counts()
        self._latency = Durations(catalog.PICK_LATENCY.buckets_seconds)
        self._aborts = Counts()
        self._unknown = Counts()

    def push_ended(self, result: str) -> None:
        """Count an upload that ended; *result* is ``ok`` or see :func:`push_result`."""
        self._pushes.add((result,))

    def picked(self, outcome: Outcome, qos: QosClass, duration_ns: int) -> None:
        """Count an answer."""
        self._picks.add((outcome.value, qos.value))
        self._latency.observe(duration_ns)

    def aborted(self, reason: str) -> None:
        """Count an Abort."""
        self._aborts.add((reason,))

    def reported(self, method: str, *, is_known: bool) -> None:
        """Count a report if it changed nothing."""
        if not is_known:
            self._unknown.add((method,))

    def families(self) -> list[Family]:
        """Return a copy of all numbers."""
        bodies, decisions = self._plane.bodies, self._plane.decisions
        under_way = dict(decisions.in_flight)
        self._labels.make_room(under_way)
        in_flight = self._labels.fold(under_way)
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
            Family(catalog.EXPIRED, self._expired()),
        ]

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
