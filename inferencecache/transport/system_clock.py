"""The system's time; no other module of the server reads it."""

import time
from typing import Final


class SystemClock:
    """A clock that follows the machine's; every lookup asks it, so nothing stands in between."""

    now_ns = staticmethod(time.time_ns)
    monotonic_ns = staticmethod(time.monotonic_ns)


thread_cpu_ns: Final = time.thread_time_ns
"""Processor time of the calling thread: what its work costs, whatever else the machine does."""
