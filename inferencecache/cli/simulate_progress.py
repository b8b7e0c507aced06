"""The progress line of a simulation."""

from typing import Final

from rich.console import Console
from rich.progress import TextColumn

from inferencecache.cli.progress_line import ProgressLine

_UPDATES: Final = 100
"""About how often the line changes per strategy."""


class SimulateProgress(ProgressLine):
    """Shows which strategy is being played, and how far it is.

    Args:
        console: Where to draw; nothing moves there unless it is a terminal.
        total: Requests per strategy.
    """

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(console, "simulate", total, _UPDATES, TextColumn("{task.fields[state]}"))
        self._strategy = ""
        self._offered = 0

    def offered(self, strategy: str) -> None:
        """Move the line on."""
        if strategy != self._strategy:
            self._strategy, self._offered = strategy, 0
        self._offered += 1
        if self.is_due(self._offered):
            self.move(self._offered, strategy)
