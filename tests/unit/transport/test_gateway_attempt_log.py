"""An outage fills no log."""

from log_lines import LogLines

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.gateway import Failure
from inferencecache.transport.gateway_attempt_log import AttemptLog


def test_each_way_to_fail_has_a_line_now_and_then() -> None:
    """With the number of those that have none."""
    clock, lines = ManualClock(), LogLines()
    log = AttemptLog(lines, clock, NS_PER_S)
    for _ in range(5):
        for failure in (Failure.UNREACHABLE, Failure.SLOW):
            log.failed(failure, request_id="r", attempt=1, detail="d")
    clock.advance_ns(NS_PER_S)
    log.failed(Failure.SLOW, request_id="s", attempt=2, detail="d")
    told = [
        (line["failure"], line["request_id"], line["unlogged"])
        for line in lines.of("gateway_attempt_failed")
    ]
    assert told == [("unreachable", "r", 0), ("slow", "r", 0), ("slow", "s", 4)]
