"""Counts what becomes of prompts, and says in the log now and then what went wrong."""

from collections import defaultdict
from typing import Final

from inferencecache.clock import Clock
from inferencecache.picker.fleet import ObjectName
from inferencecache.transport import tokenize_catalog as catalog
from inferencecache.transport.metric_cells import Counts, Durations, LabelValues, Spread
from inferencecache.transport.structured_log import EventLog

_LINES_MAX: Final = 1_000


class TokenizeWatch:
    """The observer of a reader of prompts.

    Args:
        log: Gets a line for the first failure of each worker set, kind and interval.
        clock: Measures the interval.
        interval_ns: Shortest time between two such lines.
    """

    def __init__(self, log: EventLog, clock: Clock, interval_ns: int) -> None:
        self._log = log
        self._clock = clock
        self._interval_ns = interval_ns
        self._results = Counts()
        self._durations: defaultdict[str, Durations] = defaultdict(_durations)
        self._next_line_ns: dict[tuple[ObjectName, str], int] = {}
        self._unlogged: defaultdict[tuple[ObjectName, str], int] = defaultdict(int)

    def answered(self, result: str) -> None:
        """Count a prompt by what became of it, one of a few words."""
        self._results.add((result,))

    def took(self, by: str, duration_ns: int) -> None:
        """Measure a tokenization."""
        self._durations[by].observe(duration_ns)

    def failed(self, worker_set: ObjectName, why: str, error: str) -> None:
        """Say that a prompt has no tokens, if nobody has for a while.

        Args:
            worker_set: Whose tokens they would have been.
            why: As a token for the reason.
            error: What happened, in words that hold nothing of the prompt.
        """
        subject = (worker_set, why)
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._next_line_ns.get(subject, now_ns):
            self._unlogged[subject] += 1
            return
        if len(self._next_line_ns) >= _LINES_MAX:
            self._next_line_ns.clear()
            self._unlogged.clear()
        self._next_line_ns[subject] = now_ns + self._interval_ns
        self._log.warning(
            "picker_prompt_without_tokens",
            worker_set=str(worker_set),
            why=why,
            error=error,
            unlogged=self._unlogged.pop(subject, 0),
        )

    def results(self) -> dict[LabelValues, int]:
        """Return how often what happened."""
        return self._results.rows()

    def durations(self) -> dict[LabelValues, Spread]:
        """Return how long tokenizations took."""
        return {(by,): taken.spread() for by, taken in self._durations.items()}


def _durations() -> Durations:
    return Durations(catalog.TOKENIZE_LATENCY.buckets_seconds)
