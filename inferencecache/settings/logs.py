"""Settings of the log."""

from dataclasses import dataclass

from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """How and from which level on events are written to standard error."""

    format: str = knob(
        "json",
        flag="log-format",
        kind=KnobKind.TEXT,
        choices=("json", "text"),
        help="Form of the log on standard error, one event a line.",
    )
    level: str = knob(
        "info",
        flag="log-level",
        kind=KnobKind.TEXT,
        choices=("debug", "info", "warn", "warning", "error"),
        help="Least severe event that is logged.",
    )
