"""What happens on the way to one server, counted."""

from dataclasses import dataclass, field
from typing import Final

REPORT_METHOD: Final = "ReportCacheState"
EVENT_METHOD: Final = "PublishEvent"


@dataclass(slots=True)
class LinkCounters:
    """Totals since the start.

    Attributes:
        rounds: Rounds acknowledged.
        stored_keys: Keys acknowledged as stored.
        failed_calls: Calls that failed, by method.
        losses: Connections lost.
        resyncs: Lanes told everything again.
        renewals: Times the slow repetition began.
        refused: Rounds given up because they do not fit the wire; each is a bug.
    """

    rounds: int = 0
    stored_keys: int = 0
    failed_calls: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys((REPORT_METHOD, EVENT_METHOD), 0)
    )
    losses: int = 0
    resyncs: int = 0
    renewals: int = 0
    refused: int = 0

    @property
    def failures(self) -> int:
        """Attempts that failed."""
        return sum(self.failed_calls.values())
