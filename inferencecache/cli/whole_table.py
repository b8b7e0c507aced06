"""Tables of numbers: wider than the terminal rather than with digits missing."""

from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDEST: Final = 1_000


def titled(title: str) -> Text:
    """Return a title that is shown as it stands: the name of a file may look like markup."""
    return Text(title, style="table.title")


def print_whole(table: Table, console: Console) -> None:
    """Print a table of columns that do not wrap; where they need more room, that is taken."""
    needed = console.measure(table, options=console.options.update(max_width=_WIDEST)).maximum
    terminal, console.width = console.width, max(console.width, needed)
    console.print(table)
    console.width = terminal
