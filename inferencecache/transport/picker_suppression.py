"""Say in the log, and count, when a destination is left alone and when that is over."""

from inferencecache.clock import NS_PER_MS
from inferencecache.picker.choosing import FailureKind, Subject
from inferencecache.transport.metric_cells import Counts, LabelValues
from inferencecache.transport.structured_log import EventLog


class ReportedSuppressions:
    """Tells both edges.

    Args:
        log: Gets a line for each.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._counts = Counts()

    def suppressed(self, subject: Subject, kind: FailureKind, duration_ns: int) -> None:
        """Tell that *subject* is not picked for a while."""
        self._counts.add((kind.value,))
        self._log.warning(
            "picker_candidate_suppressed",
            candidate=str(subject),
            reason=kind.value,
            duration_ms=duration_ns // NS_PER_MS,
        )

    def restored(self, subject: Subject, why: str) -> None:
        """Tell that *subject* is picked again."""
        self._log.info("picker_candidate_restored", candidate=str(subject), reason=why)

    def rows(self) -> dict[LabelValues, int]:
        """Return how often destinations were suppressed, by reason."""
        return self._counts.rows()
