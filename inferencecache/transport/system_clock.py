"""The system's time; no other module of the server reads it."""

import time


class SystemClock:
    """A clock that follows the machine's; every lookup asks it, so nothing stands in between."""

    now_ns = staticmethod(time.time_ns)
    monotonic_ns = staticmethod(time.monotonic_ns)
