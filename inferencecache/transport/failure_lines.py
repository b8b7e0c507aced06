"""Unexpected exceptions in the log: one counted line for each subject and interval."""

from typing import Final

from inferencecache.clock import Clock
from inferencecache.transport.structured_log import EventLog, Field


class FailureLines:
    """Logs the first failure of each subject and interval.

    Args:
        event: What the lines are called.
        field: What their subject is called.
        log: Gets them.
        clock: Measures the interval.
        interval_ns: Shortest time between two lines about one subject, in nanoseconds.
    """

    def __init__(
        self, event: str, field: str, log: EventLog, clock: Clock, interval_ns: int
    ) -> None:
        self._event: Final = event
        self._field: Final = field
        self._log: Final = log
        self._clock: Final = clock
        self._interval_ns: Final = interval_ns
        self._next_line_ns: dict[str, int] = {}
        self._unlogged: dict[str, int] = {}

    def failed(self, subject: str, error: Exception) -> None:
        """Say that *error* was raised, and where; not its message, which may quote input.

        Args:
            subject: What failed; callers have a bounded number of them.
            error: What was raised.
        """
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._next_line_ns.get(subject, now_ns):
            self._unlogged[subject] = self._unlogged.get(subject, 0) + 1
            return
        self._next_line_ns[subject] = now_ns + self._interval_ns
        fields: dict[str, Field] = {
            self._field: subject,
            "error": type(error).__name__,
            "where": _where(error),
            "unlogged": self._unlogged.pop(subject, 0),
        }
        self._log.error(self._event, **fields)


def _where(error: Exception) -> str:
    """Return module and line at which *error* was raised."""
    trace = error.__traceback__
    if trace is None:
        return "unknown"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"
