"""A progress line for commands that play many requests."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)


class ProgressLine:
    """One line that moves on while requests are played, and is gone at the end.

    Args:
        console: Where to draw; nothing moves there unless it is a terminal.
        command: What stands at its beginning.
        total: Requests to play.
        updates: About how often it changes.
        state: Shows how it stands; ``task.fields[state]`` has the text.
    """

    def __init__(
        self, console: Console, command: str, total: int, updates: int, state: ProgressColumn
    ) -> None:
        self._total = total
        self._stride = max(1, total // updates)
        self._progress = Progress(
            TextColumn(command),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            state,
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(command, total=total, state="")

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

    def is_due(self, requests: int) -> bool:
        """Return whether the line changes after so many *requests*."""
        if self._progress.disable:
            return False
        return requests % self._stride == 0 or requests == self._total

    def move(self, requests: int, state: str) -> None:
        """Show how far it is, and how it stands."""
        self._progress.update(self._task, completed=requests, state=state)
