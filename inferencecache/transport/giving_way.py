"""Work that makes a great many objects, beside an event loop that needs its turns.

The garbage collector looks at every object again whenever there is a quarter more of them, in one
go that nothing can slice. While ten thousand objects are made it would do so several times, and
find nothing: what is made here has no cycles. Python code in a thread, on the other hand, gives the
loop its turn as often as the interpreter's switch interval says; a lookup needs several turns, so
that is shortened.

Rules of this file: both hold for the whole process, so they begin with the first piece of work that
wants them and end with the last, in whatever order pieces end.
"""

import gc
import sys
from collections.abc import Callable
from threading import Lock
from typing import Final, TypeVar

ResultT = TypeVar("ResultT")
Undo = Callable[[], None]

_SWITCH_INTERVAL_S: Final = 0.0005


class _Shared:
    """A state of the process that several pieces of work may want at a time.

    Each has it for the length of a ``with`` block.

    Args:
        begin: Brings it about and returns what undoes it.
    """

    def __init__(self, begin: Callable[[], Undo]) -> None:
        self._begin = begin
        self._lock = Lock()
        self._wanted = 0
        self._undo: Undo = _nothing

    def __enter__(self) -> None:
        with self._lock:
            if not self._wanted:
                self._undo = self._begin()
            self._wanted += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._wanted -= 1
            if not self._wanted:
                self._undo()


def _nothing() -> None:
    """Undo nothing."""


def _rest_collector() -> Undo:
    if not gc.isenabled():
        return _nothing
    gc.disable()
    return gc.enable


def _shorten_turns() -> Undo:
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    return lambda: sys.setswitchinterval(interval_s)


collections_paused: Final = _Shared(_rest_collector)
"""A context in which no garbage is collected anywhere in the process."""

_short_turns: Final = _Shared(_shorten_turns)


def giving_way(work: Callable[[], ResultT]) -> ResultT:
    """Return the result of *work*, done in this thread while another one runs the event loop."""
    with collections_paused, _short_turns:
        return work()
