"""Settings of the server process."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """How the process looks after itself, and how it ends."""

    reclaim_interval_ns: int = knob(
        100 * NS_PER_MS,
        flag="reclaim-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Pause between two looks for memory that a cleared replica has left to free.",
    )
    drain_ns: int = knob(
        10 * NS_PER_S,
        flag="drain-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Longest time that running calls and open streams get to finish after a signal.",
    )
