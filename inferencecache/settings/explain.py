"""Settings of ``inferencecache explain``: which server is asked, and as whom."""

from dataclasses import dataclass, field

from inferencecache.settings.get import ControlClientSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainSettings:
    """What ``inferencecache explain`` can be told besides what to explain."""

    control: ControlClientSettings = field(default_factory=ControlClientSettings)
