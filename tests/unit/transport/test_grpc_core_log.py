"""What the gRPC core logs by itself shows nothing of a header's value."""

import logging
import sys

import grpc

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.transport.grpc_core_log import GrpcCoreFilter

SECRET = b"Bearer SECRET \xff"


def undecodable() -> logging.LogRecord:
    """Return what the core logs of a header that is no UTF-8."""
    try:
        SECRET.decode()
    except UnicodeDecodeError:
        exc_info = sys.exc_info()
    record = logging.LogRecord(
        "grpc._cython.cygrpc", logging.ERROR, "x.pyx", 1, "Invalid encoding on %s", None, exc_info
    )
    record.args = (SECRET,)
    return record


def test_text_of_no_utf8_is_one_line_an_interval_with_a_count() -> None:
    """Neither the value nor a traceback is left; the rest is counted."""
    clock = ManualClock(0)
    core_filter = GrpcCoreFilter(60 * NS_PER_S, clock.monotonic_ns)
    first = undecodable()
    assert core_filter.filter(first)
    assert [core_filter.filter(undecodable()) for _ in range(5)] == [False] * 5
    clock.advance_ns(60 * NS_PER_S)
    second = undecodable()
    assert core_filter.filter(second)

    assert (first.fields, second.fields) == ({"unlogged": 0}, {"unlogged": 5})
    for record in (first, second):
        assert record.getMessage() == "grpc_text_not_utf8"
        assert record.exc_info is None
        assert record.levelno == logging.WARNING
        assert "SECRET" not in repr(vars(record))


def test_what_is_neither_is_heard() -> None:
    """Real trouble keeps its message and traceback, and costs such text no turn."""
    core_filter = GrpcCoreFilter(60 * NS_PER_S, ManualClock(0).monotonic_ns)
    real, gone = (
        logging.LogRecord("core", logging.ERROR, "x", 1, "raised", None, (type(e), e, None))
        for e in (RuntimeError("real"), grpc.aio.InternalError("batch"))
    )
    assert core_filter.filter(real)
    assert real.exc_info is not None
    assert not core_filter.filter(gone)
    assert core_filter.filter(undecodable())
