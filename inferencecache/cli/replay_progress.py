"""The progress line of a replay."""

from typing import Final

from rich.console import Console
from rich.progress import TextColumn

from inferencecache.cli.progress_line import ProgressLine
from inferencecache.simulation import Experiment

_UPDATES: Final = 200
"""About how often the line changes over a whole replay that is as fast as it goes."""


class ReplayProgress(ProgressLine):
    """Shows how far a replay is and how the strategies stand.

    Args:
        console: Where to draw; nothing moves there unless it is a terminal.
        total: Requests to play.
    """

    def __init__(self, console: Console, total: int) -> None:
        cached = TextColumn("[dim]cached:[/dim] {task.fields[state]}")
        super().__init__(console, "replay", total, _UPDATES, cached)
        self._console = console

    def started(self, target: str, *, is_own_server: bool) -> None:
        """Say that a server was started and lets everybody in; a named one is known."""
        if is_own_server:
            self._console.print(
                f"started a server for this replay at {target}: "
                "loopback only, authentication is off",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )

    def played(self, experiment: Experiment, requests: int) -> None:
        """Move the line on."""
        if not self.is_due(requests):
            return
        standing = experiment.standing()
        self.move(
            requests,
            f"round robin {standing.round_robin.hit_ratio:.1%}, "
            f"cache-aware {standing.cache_aware.hit_ratio:.1%}",
        )
