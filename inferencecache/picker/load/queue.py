"""How many requests a candidate has to do, and how many of them wait."""

from typing import NamedTuple

from inferencecache.picker.load.candidate_load import CandidateLoad
from inferencecache.picker.load.engine_signals import EngineSignal


class Queue(NamedTuple):
    """Requests at one engine.

    Attributes:
        requests: All of them.
        waiting: Those that it has not begun with.
    """

    requests: int
    waiting: int


def queue_of(load: CandidateLoad, signal: EngineSignal | None, concurrency_max: int) -> Queue:
    """Return what an engine has to do, by what this picker gave it and by what it says itself.

    Others may give it requests, too, so of two numbers the larger counts. An engine that does not
    say how many wait is believed to have begun with as many as it can.

    >>> queue_of(CandidateLoad(70, 0, 0), None, 64)
    Queue(requests=70, waiting=6)
    >>> queue_of(CandidateLoad(70, 0, 0), EngineSignal(waiting=2, running=90), 64)
    Queue(requests=92, waiting=2)

    Args:
        load: What this picker knows.
        signal: What the engine says; None if nothing, or nothing fresh.
        concurrency_max: Requests that it works on at once.
    """
    requests = load.requests
    if signal is None:
        return Queue(requests, max(0, requests - concurrency_max))
    requests = max(requests, (signal.running or 0) + (signal.waiting or 0))
    if signal.waiting is None:
        return Queue(requests, max(0, requests - concurrency_max))
    return Queue(requests, signal.waiting)
