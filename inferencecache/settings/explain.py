"""Settings of ``inferencecache explain``: which server is asked, as whom, and about how much."""

from dataclasses import dataclass, field

from inferencecache.settings.get import ControlClientSettings
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainBodySettings:
    """What is explained."""

    bytes_max: int = knob(
        128 * 1_048_576,
        flag="explain-max-body-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1,
        help="Largest body that is read; the server has --control-max-explain-bytes.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainSettings:
    """What ``inferencecache explain`` can be told besides what to explain."""

    body: ExplainBodySettings = field(default_factory=ExplainBodySettings)
    control: ControlClientSettings = field(default_factory=ControlClientSettings)
