"""Settings of the garbage collector in a process that serves for long."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorSettings:
    """How often everything is looked at for garbage."""

    collect_interval_ns: int = knob(
        60 * 60 * NS_PER_S,
        flag="full-collection-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Time between two garbage collections of everything, each of which stops a server "
        "for some 35 ms per million blocks; 0 for none.",
    )
