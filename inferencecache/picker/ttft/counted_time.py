"""What a time to the first token counts as, whatever a caller has measured."""

from typing import Final

from inferencecache.settings.picker_ttft import TtftSettings

_MS_MIN: Final = 1.0


def counted_ms(time_ms: float, settings: TtftSettings) -> float:
    """Return *time_ms* within what a time to the first token can be."""
    return min(max(_MS_MIN, time_ms), float(settings.observed_ms_max))
