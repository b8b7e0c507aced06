"""How much work a call does, as a number that does not depend on the machine."""

import gc
import sys
from collections.abc import Callable
from types import FrameType


def lines_run(call: Callable[[], object]) -> int:
    """Return how many source lines *call* executes, loop turns counted each time.

    The collector stays away meanwhile: whatever listens to its visits (hypothesis does) would be
    counted as work of the call.
    """
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> object:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    collecting = gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
        if collecting:
            gc.enable()
    return lines
