"""What a gateway counts."""

from collections.abc import Callable

from inferencecache.gateway import ReplayRoom
from inferencecache.transport import gateway_catalog as catalog
from inferencecache.transport.metric_cells import Counts, Durations, Family


class GatewayMetrics:
    """The numbers of one gateway, all written on its event loop.

    Args:
        room: Of bodies that are kept.
    """

    def __init__(self, room: ReplayRoom) -> None:
        self._room = room
        self._in_flight = 0
        self._counts = {
            spec: Counts()
            for spec in (
                catalog.REQUESTS,
                catalog.ANSWERS,
                catalog.CUT_ANSWERS,
                catalog.CALL_FAILURES,
                catalog.RETRIES,
                catalog.FALLBACKS,
                catalog.REPORTS,
                catalog.SECRET_FAILURES,
            )
        }
        for spec in (catalog.CUT_ANSWERS, catalog.FALLBACKS, catalog.SECRET_FAILURES):
            self._counts[spec].add(amount=0)
        self._durations = {
            spec: Durations(spec.buckets_seconds) for spec in (catalog.FIRST_BYTES, catalog.CHOICES)
        }
        self.pending_reports: Callable[[], int] = int

    @property
    def in_flight(self) -> int:
        """Requests that are being worked on."""
        return self._in_flight

    def began(self) -> None:
        """Count a request that comes in."""
        self._in_flight += 1

    def ended(self, path: str, status: int) -> None:
        """Count a request that is over.

        Args:
            path: One of the API's, or ``other``.
            status: Of the answer; 0 for none.
        """
        self._in_flight -= 1
        self._counts[catalog.REQUESTS].add((path, str(status)))

    def chose(self, duration_ns: int) -> None:
        """Count a choice of the picker."""
        self._durations[catalog.CHOICES].observe(duration_ns)

    def answered(self, destination: str, status: int, first_byte_ns: int | None) -> None:
        """Count an answer.

        Args:
            destination: ``worker``, ``provider`` or ``fallback``.
            status: HTTP status; 0 for no answer.
            first_byte_ns: Time until its body began; None without one.
        """
        self._counts[catalog.ANSWERS].add((destination, str(status)))
        if first_byte_ns is not None:
            self._durations[catalog.FIRST_BYTES].observe(first_byte_ns)

    def answer_cut(self) -> None:
        """Count an answer that ended before its end."""
        self._counts[catalog.CUT_ANSWERS].add()

    def call_failed(self, method: str, status: str) -> None:
        """Count a failed call to the picker."""
        self._counts[catalog.CALL_FAILURES].add((method, status))

    def retried(self, failure: str) -> None:
        """Count a second attempt."""
        self._counts[catalog.RETRIES].add((failure,))

    def fell_back(self) -> None:
        """Count a request to the fallback."""
        self._counts[catalog.FALLBACKS].add()

    def reported(self, method: str, result: str) -> None:
        """Count a report."""
        self._counts[catalog.REPORTS].add((method, result))

    def files_refused(self) -> None:
        """Count a state of a backend's files that could not be used."""
        self._counts[catalog.SECRET_FAILURES].add()

    def families(self) -> list[Family]:
        """Return a copy of all numbers."""
        gauges = {
            catalog.IN_FLIGHT: self._in_flight,
            catalog.KEPT_BYTES: self._room.taken_bytes,
            catalog.PENDING_REPORTS: self.pending_reports(),
        }
        return [
            *(Family(spec, {(): value}) for spec, value in gauges.items()),
            *(Family(spec, cell.rows()) for spec, cell in self._counts.items()),
            *(Family(spec, spreads={(): cell.spread()}) for spec, cell in self._durations.items()),
        ]
