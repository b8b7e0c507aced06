"""Attempts that came to nothing in the log: one counted line for each way to fail, now and then."""

from typing import Final

from inferencecache.clock import Clock
from inferencecache.gateway import Failure
from inferencecache.transport.structured_log import EventLog


class AttemptLog:
    """Logs the first failed attempt of each way to fail and interval.

    Args:
        log: Gets the lines.
        clock: Measures the interval.
        interval_ns: Shortest time between two lines about one way to fail, in nanoseconds.
    """

    def __init__(self, log: EventLog, clock: Clock, interval_ns: int) -> None:
        self._log: Final = log
        self._clock: Final = clock
        self._interval_ns: Final = interval_ns
        self._next_line_ns: dict[Failure, int] = {}
        self._unlogged: dict[Failure, int] = {}

    def failed(self, failure: Failure, *, request_id: str, attempt: int, detail: str) -> None:
        """Say that an attempt failed.

        Args:
            failure: How.
            request_id: Whose attempt it was.
            attempt: Its number, from 1.
            detail: What is known of it; nothing of a body, no key.
        """
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._next_line_ns.get(failure, now_ns):
            self._unlogged[failure] = self._unlogged.get(failure, 0) + 1
            return
        self._next_line_ns[failure] = now_ns + self._interval_ns
        self._log.warning(
            "gateway_attempt_failed",
            failure=failure.value,
            request_id=request_id,
            attempt=attempt,
            detail=detail,
            unlogged=self._unlogged.pop(failure, 0),
        )
