"""Threads for work that an event loop waits for, as cheap to hand over as can be.

A pool of the standard library makes a future with locks of its own for each piece of work, and its
threads are busy with those still while the loop that was told wants to go on. All of that takes
longer than what is new of many a conversation.

Rules of this file: threads are daemons, so that the process can end although nobody has stopped
them; but it waits for what they are at, since code in another language must not be cut off.
"""

import atexit
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final
from weakref import WeakKeyDictionary

Work = Callable[[], object]


class WorkPiece:
    """Work that was handed over.

    Args:
        work: Does it; whatever goes wrong is its own business, so it raises nothing.
    """

    __slots__ = ("_work",)

    def __init__(self, work: Work) -> None:
        self._work: Work | None = work

    def cancel(self) -> bool:
        """Do it no more; returns whether that was still possible."""
        work, self._work = self._work, None
        return work is not None

    def run(self) -> None:
        """Do it, unless it was called off."""
        work, self._work = self._work, None
        if work is not None:
            work()


_Queue = SimpleQueue[WorkPiece | None]
"""None ends a thread."""

_QUEUES: Final[WeakKeyDictionary[Thread, _Queue]] = WeakKeyDictionary()
"""Of all threads that are."""


class WorkThreads:
    """Does work in order, so many pieces at a time; to be used from one thread.

    Args:
        threads_max: How many; each begins when there is first something for it to do.
        name: What they are called.
    """

    def __init__(self, threads_max: int, name: str) -> None:
        self._threads_max = threads_max
        self._name = name
        self._threads = 0
        self._queue: _Queue = SimpleQueue()

    def begin(self, work: Work) -> WorkPiece:
        """Hand *work* over, which raises nothing."""
        piece = WorkPiece(work)
        self._queue.put(piece)
        if self._threads < self._threads_max:
            self._threads += 1
            name = f"{self._name}-{self._threads}"
            thread = Thread(target=_serve, args=(self._queue,), name=name, daemon=True)
            _QUEUES[thread] = self._queue
            thread.start()
        return piece

    def stop(self) -> None:
        """Begin no further piece; those under way are not waited for."""
        while True:
            try:
                self._queue.get_nowait()
            except Empty:
                break
        for _ in range(self._threads):
            self._queue.put(None)


def _serve(queue: _Queue) -> None:
    while (piece := queue.get()) is not None:
        piece.run()
        del piece  # nothing of a prompt stays until the next one comes


@atexit.register
def _end_all() -> None:
    threads = list(_QUEUES.items())
    for _, queue in threads:
        queue.put(None)
    for thread, _ in threads:
        thread.join()
