"""What every lookup client does around its call; the clients differ only in the call."""

from collections.abc import Container

from inferencecache.client.interpret import CONFIGURATION_CODES, interpret
from inferencecache.client.notices import Metrics, OnWarning, WarnOnce
from inferencecache.client.result import LookupResult
from inferencecache.clock import NS_PER_MS, NS_PER_S, Clock
from inferencecache.settings.client import ClientSettings
from inferencecache.transport.client_values import LookupOutcome, LookupQuery


class LookupCore:
    """Deadline before the call; result, numbers and warnings after it.

    Args:
        settings: Default deadline and bound on warnings.
        metrics: Where lookups are counted.
        on_warning: Receives each wrong key once.
        clock: Measures how long callers wait.
    """

    def __init__(
        self, settings: ClientSettings, metrics: Metrics, on_warning: OnWarning, clock: Clock
    ) -> None:
        self._deadline_ns = settings.lookup_deadline_ns
        self._metrics = metrics
        self._warn_once = WarnOnce(on_warning, settings.warnings_max)
        self._clock = clock

    def begin(self) -> int:
        """Return the start of a lookup, for :meth:`finish`."""
        return self._clock.monotonic_ns()

    def timeout_s(self, deadline_ms: float | None) -> float:
        """Return how long a call may take, in seconds.

        Args:
            deadline_ms: The caller's wish in milliseconds; None takes the setting.
        """
        if deadline_ms is None:
            return self._deadline_ns / NS_PER_S
        return deadline_ms * NS_PER_MS / NS_PER_S

    def finish(
        self,
        started_ns: int,
        query: LookupQuery,
        outcome: LookupOutcome,
        eligible: Container[str] | None,
    ) -> LookupResult:
        """Return the result of a lookup, counted, its wrong key reported.

        Args:
            started_ns: What :meth:`begin` returned.
            query: What was asked.
            outcome: What came of it.
            eligible: Replicas the caller can use now; None accepts every one.
        """
        result = interpret(query, outcome, eligible)
        self._metrics.lookup_finished(result.reason_code, self._clock.monotonic_ns() - started_ns)
        if result.cause is not None:
            self._metrics.hint_missing(result.cause)
        if result.reason_code in CONFIGURATION_CODES:
            self._metrics.configuration_error(result.reason_code)
            self._warn_once.raise_once(result.reason_code, query)
        return result
