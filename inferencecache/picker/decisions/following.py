"""Whoever wants to know how one decision goes on."""

from typing import Protocol

from inferencecache.picker.decisions.decision import Ending
from inferencecache.picker.decisions.reports import AbortReport, FinalTokenReport, FirstTokenReport


class DecisionFollower(Protocol):
    """Told how one decision goes on, and once how it ends.

    Nothing comes behind that but, where a final report has overtaken it, the first token.
    """

    def first_token(self, report: FirstTokenReport) -> None:
        """Learn from the first report of a first token."""
        ...

    def ended(self, ending: Ending, report: FinalTokenReport | AbortReport | None) -> None:
        """Learn that the request is over.

        Args:
            ending: How it ended.
            report: What the caller said at the end; None where nobody did.
        """
        ...
