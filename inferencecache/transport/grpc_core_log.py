"""What the gRPC core logs by itself, without what must not be seen and what is no fault of ours.

The core writes the whole value of a header that is no UTF-8 into its log, each time it looks at it;
such a value may be a credential, and whoever calls decides how long and how often.
"""

import logging
from collections.abc import Callable
from typing import Final

import grpc

GRPC_CORE_LOGGER: Final = "grpc._cython.cygrpc"
_TOO_LATE: Final = "due to server stop."


class GrpcCoreFilter(logging.Filter):
    """Leaves out, or rewrites, records of the gRPC core.

    * Calls whose caller has gone, and those that come as the server goes, are left out.
    * Text that is no UTF-8 becomes one ``grpc_text_not_utf8`` per interval, with the number of
      those that were not logged since the last one and nothing of the text.

    Args:
        interval_ns: Shortest time between two lines about such text, in nanoseconds.
        monotonic_ns: Measures it.
    """

    def __init__(self, interval_ns: int, monotonic_ns: Callable[[], int]) -> None:
        super().__init__()
        self._interval_ns: Final = interval_ns
        self._monotonic_ns: Final = monotonic_ns
        self._next_line_ns: int | None = None
        self._unlogged = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether *record* is worth a line, without what it must not show."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, UnicodeError):
            return self._is_due(record)
        has_gone = isinstance(error, grpc.aio.InternalError)
        return not has_gone and not str(record.msg).endswith(_TOO_LATE)

    def _is_due(self, record: logging.LogRecord) -> bool:
        now_ns = self._monotonic_ns()
        if self._next_line_ns is not None and now_ns < self._next_line_ns:
            self._unlogged += 1
            return False
        self._next_line_ns = now_ns + self._interval_ns
        record.msg, record.args = "grpc_text_not_utf8", None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.exc_info = record.exc_text = None
        record.fields = {"unlogged": self._unlogged}
        self._unlogged = 0
        return True


def filter_grpc_core(core_filter: GrpcCoreFilter) -> None:
    """Let *core_filter*, and none that was set before it, decide about the core's records."""
    logger = logging.getLogger(GRPC_CORE_LOGGER)
    for former in [f for f in logger.filters if isinstance(f, GrpcCoreFilter)]:
        logger.removeFilter(former)
    logger.addFilter(core_filter)
