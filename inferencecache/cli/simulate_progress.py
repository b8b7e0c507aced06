"""The progress line of a simulation."""

from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_UPDATES: Final = 100
"""About how often the line changes per strategy."""


class SimulateProgress:
    """Shows which strategy is being played, and how far it is.

    Args:
        console: Where to draw; nothing moves there unless it is a terminal.
        total: Requests per strategy.
    """

    def __init__(self, console: Console, total: int) -> None:
        self._total = total
        self._stride = max(1, total // _UPDATES)
        self._strategy = ""
        self._offered = 0
        self._progress = Progress(
            TextColumn("simulate"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[strategy]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("simulate", total=total, strategy="")

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

    def offered(self, strategy: str) -> None:
        """Move the line on."""
        if self._progress.disable:
            return
        if strategy != self._strategy:
            self._strategy, self._offered = strategy, 0
        self._offered += 1
        if self._offered % self._stride == 0 or self._offered == self._total:
            self._progress.update(self._task, completed=self._offered, strategy=strategy)
