"""The progress line of a replay."""

from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from inferencecache.simulation import Experiment

_UPDATES: Final = 200
"""About how often the line changes over a whole replay that is as fast as it goes."""


class ReplayProgress:
    """Shows how far a replay is and how the strategies stand.

    Args:
        console: Where to draw; nothing moves there unless it is a terminal.
        total: Requests to play.
    """

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._stride = max(1, total // _UPDATES)
        self._progress = Progress(
            TextColumn("replay"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("[dim]cached:[/dim] {task.fields[standing]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("replay", total=total, standing="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

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
        if self._progress.disable or (requests % self._stride and requests != self._total):
            return
        standing = experiment.standing()
        self._progress.update(
            self._task,
            completed=requests,
            standing=f"round robin {standing.round_robin.hit_ratio:.1%}, "
            f"cache-aware {standing.cache_aware.hit_ratio:.1%}",
        )
