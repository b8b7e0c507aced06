"""When a prompt is due, in wall-clock time."""

from inferencecache.clock import NS_PER_MS


def due_in_ns(arrival_ms: int, speed: float, elapsed_ns: int) -> int:
    """Return how long to wait for a prompt, in nanoseconds, >= 0.

    Args:
        arrival_ms: Its arrival, milliseconds from the start of the trace.
        speed: Trace time per wall-clock time; 0 never waits.
        elapsed_ns: Wall-clock time since the replay began, in nanoseconds.
    """
    if not speed:
        return 0
    return max(0, int(arrival_ms * NS_PER_MS / speed) - elapsed_ns)
