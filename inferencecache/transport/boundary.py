"""Where exceptions end: nothing of ours reaches a peer as INTERNAL or UNKNOWN.

One of the places that may catch everything. What was raised on purpose becomes its status; anything
else is counted, logged now and then without a word of the request, and answered UNAVAILABLE.
"""

from typing import Any, NoReturn, Protocol

import grpc

from inferencecache.clock import Clock
from inferencecache.transport.failure_lines import FailureLines
from inferencecache.transport.status import UNEXPECTED, status_of
from inferencecache.transport.structured_log import EventLog

Context = grpc.aio.ServicerContext[Any, Any]


class RpcObserver(Protocol):
    """Told what the gRPC service received and what went wrong with it."""

    def update_received(self, entries: int, lag_ns: int | None) -> None:
        """Take note of one applied update.

        Args:
            entries: Prefix entries it carried.
            lag_ns: Time since its own timestamp, None where it bears none; negative ahead of ours.
        """
        ...

    def event_received(self, kind: str) -> None:
        """Take note of one event; *kind* is its type's name on the wire."""
        ...

    def message_unparsable(self, method: str) -> None:
        """Take note of a message that did not parse."""
        ...

    def handler_failed(self, method: str) -> None:
        """Take note of an unexpected exception."""
        ...


class FailureLog:
    """Counts unexpected exceptions and logs the first of each method and interval.

    Args:
        observer: Counts every one.
        log: Gets a line now and then.
        clock: Measures the interval.
        interval_ns: Shortest time between two lines of one method, in nanoseconds.
    """

    def __init__(
        self, observer: RpcObserver, log: EventLog, clock: Clock, interval_ns: int
    ) -> None:
        self._observer = observer
        self._lines = FailureLines("grpc_handler_failed", "method", log, clock, interval_ns)

    def failed(self, method: str, error: Exception) -> None:
        """Record that *method* raised *error*; its message is not logged, it may quote input.

        Args:
            method: Name of the RPC.
            error: What it raised.
        """
        self._observer.handler_failed(method)
        self._lines.failed(method, error)


class Boundary:
    """Turns what a handler raises, or could not be given, into a status.

    Args:
        observer: Counts messages that did not parse.
        failures: Records unexpected exceptions.
        request_bytes_max: Longest request that is parsed in one go; None for any.

    Attributes:
        request_bytes_max: As given.
    """

    def __init__(
        self, observer: RpcObserver, failures: FailureLog, request_bytes_max: int | None = None
    ) -> None:
        self._observer = observer
        self._failures = failures
        self.request_bytes_max = request_bytes_max

    async def refuse_unparsable(self, method: str, context: Context) -> NoReturn:
        """End the call with INVALID_ARGUMENT: its request was no valid message, or too long."""
        self._observer.message_unparsable(method)
        limit = self.request_bytes_max
        size = "" if limit is None else f" of at most {limit:,} bytes"
        await context.abort(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"{method}: the request is not a valid message{size}",
        )

    async def refuse(
        self,
        method: str,
        context: Context,
        error: Exception,
    ) -> NoReturn:
        """End the call with the status of *error*."""
        status = status_of(error)
        if status is not None:
            await context.abort(status, f"{method}: {error}")
        self._failures.failed(method, error)
        await context.abort(UNEXPECTED, f"{method}: the server failed; try again")
