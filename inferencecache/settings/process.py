"""Settings of the server process."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """How the process ends."""

    drain_ns: int = knob(
        10 * NS_PER_S,
        flag="drain-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Longest time that running calls and open streams get to finish after a signal.",
    )
