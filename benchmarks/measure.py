"""Timing: medians of many short batches, with the garbage collector left on as in a server."""

import statistics
from collections.abc import Callable, Iterable
from time import perf_counter_ns

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

_BATCH_NS = 200 * NS_PER_US
_BATCHES_MIN = 5


def require(condition: bool, claim: str) -> None:  # noqa: FBT001 - reads like an assertion
    """Stop a benchmark that does not do the work it claims to time.

    Raises:
        RuntimeError: The claim does not hold.
    """
    if not condition:
        raise RuntimeError(f"not true: {claim}")


def median_us(call: Callable[[], object], budget_s: float = 1.0) -> float:
    """Return the median time of one call, in microseconds.

    Calls are grouped into batches of about 0.2 ms: long enough that reading the clock does not
    count, short enough that most batches are not interrupted on a busy machine.

    Args:
        call: What to time; must leave things as they were.
        budget_s: How long to measure, in seconds.
    """
    call()
    started = perf_counter_ns()
    call()
    calls = max(1, _BATCH_NS // max(1, perf_counter_ns() - started))
    deadline = perf_counter_ns() + int(budget_s * NS_PER_S)
    batches: list[float] = []
    while len(batches) < _BATCHES_MIN or perf_counter_ns() < deadline:
        started = perf_counter_ns()
        for _ in range(calls):
            call()
        batches.append((perf_counter_ns() - started) / calls)
    return statistics.median(batches) / NS_PER_US


def each_us(calls: Iterable[Callable[[], object]]) -> list[float]:
    """Time calls that can be made only once each; return microseconds, clock reading taken off."""
    overhead = _clock_ns()
    times = []
    for call in calls:
        started = perf_counter_ns()
        call()
        times.append((perf_counter_ns() - started - overhead) / NS_PER_US)
    return times


def elapsed_us(call: Callable[[], object]) -> float:
    """Return how long one call takes, in microseconds."""
    started = perf_counter_ns()
    call()
    return (perf_counter_ns() - started) / NS_PER_US


def quantile(values: list[float], share: float) -> float:
    """Return the value below which *share* of *values* lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _clock_ns() -> int:
    readings = []
    for _ in range(200):
        started = perf_counter_ns()
        readings.append(perf_counter_ns() - started)
    return int(statistics.median(readings))
