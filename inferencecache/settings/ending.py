"""Settings of how the process of a service ends."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingSettings:
    """How long a process waits for what goes on although its work has ended."""

    left_wait_ns: int = knob(
        NS_PER_S,
        flag="end-wait",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=100 * NS_PER_MS,
        help="Longest time that tasks and threads which go on behind the orderly end, as those of "
        "plugins may, get to finish before the process ends without them.",
    )
