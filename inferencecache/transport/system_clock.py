"""The system's time; no other module of the server reads it."""

import time


class SystemClock:
    """A clock that follows the machine's."""

    def now_ns(self) -> int:
        """Return Unix time in nanoseconds."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Return nanoseconds from an arbitrary start that never go back."""
        return time.monotonic_ns()
