"""How long a call keeps the processor, with as little of everything else in it as can be."""

import gc
import time
from collections.abc import Callable

_TRIES = 3


def least_s(prepared: Callable[[], Callable[[], object]]) -> float:
    """Return the processor time of a call in seconds: the least of three tries.

    What else the machine does only ever adds to one. The collector stays away meanwhile: how long
    it takes depends on what other tests have left.

    Args:
        prepared: Makes the call anew for each try; what that takes does not count.
    """
    return min(_timed_s(prepared()) for _ in range(_TRIES))


def _timed_s(call: Callable[[], object]) -> float:
    collecting = gc.isenabled()
    gc.disable()
    started_s = time.thread_time()
    try:
        call()
        return time.thread_time() - started_s
    finally:
        if collecting:
            gc.enable()
