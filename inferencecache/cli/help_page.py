"""Write ``--help``: every name whole, at any width of the terminal.

An option's text stands below its name, not beside it: names of settings and of their variables are
long, and a column beside them is cut or torn apart on a terminal of usual width.
"""

import shutil
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

WIDTH_MAX: Final = 100
"""Longer lines are harder to read."""

GLUE: Final = "\N{NO-BREAK SPACE}"
"""Stands between words of a help text that should stay on one line; written out as a space."""

_INDENT: Final = 2
_TEXT_INDENT: Final = 6
_SHORTEST_LINE: Final = 30

_FORMS: Final = {
    "DURATION": "DURATION is a number with a unit, or several: 250ms, 30s, 5m, 1h30m.",
    "BOOLEAN": "BOOLEAN is true or false; the option alone means true.",
}
"""What a kind of value looks like, said once at the end of a page that has it."""


class PlainHelpCommand(TyperCommand):
    """A command whose help is written by this module."""

    def get_help(self, ctx: Any) -> str:  # noqa: ANN401 - typer keeps the class to itself
        """Return the help page, for the width of the terminal."""
        return "\n".join(_page(self, ctx))


class PlainHelpGroup(TyperGroup):
    """A program whose help is written by this module."""

    def get_help(self, ctx: Any) -> str:  # noqa: ANN401 - typer keeps the class to itself
        """Return the help page with one line per command, for the width of the terminal."""
        return "\n".join(_page(self, ctx))


def _page(command: TyperCommand | TyperGroup, ctx: Any) -> Iterator[str]:  # noqa: ANN401 - as above
    """Yield the page's lines."""
    width = max(min(shutil.get_terminal_size().columns, WIDTH_MAX), _SHORTEST_LINE)
    usage = ["Usage:", ctx.command_path, *command.collect_usage_pieces(ctx)]
    yield from _wrapped(" ".join(usage), width, 0, _TEXT_INDENT)
    for paragraph in (command.help or "").split("\n\n"):
        yield ""
        yield from _wrapped(paragraph, width)
    parameters = [one for one in command.get_params(ctx) if not getattr(one, "hidden", False)]
    for title, members in _sections(parameters).items():
        yield from ("", f"{title}:")
        for parameter in members:
            yield from _parameter(parameter, width)
    if isinstance(command, TyperGroup):
        yield from _commands(command, ctx, width)
    yield from _notes(parameters, width)
    if command.epilog:
        yield ""
        yield from _wrapped(command.epilog, width)


def _sections(parameters: list[Any]) -> dict[str, list[Any]]:
    """Return the parameters by heading: first what stands on its own, then groups of settings."""
    sections: dict[str, list[Any]] = {"Arguments": [], "Options": []}
    for parameter in parameters:
        own = "Arguments" if parameter.param_type_name == "argument" else "Options"
        title = getattr(parameter, "rich_help_panel", None) or own
        sections.setdefault(title, []).append(parameter)
    return {title: members for title, members in sections.items() if members}


def _parameter(parameter: Any, width: int) -> Iterator[str]:  # noqa: ANN401 - as above
    """Yield one option or argument: its names and value, and below them what it is."""
    if parameter.param_type_name == "argument":
        head = parameter.metavar
    else:
        value = [] if parameter.is_flag else [parameter.metavar or "VALUE"]
        required = ["(required)"] if parameter.required else []
        head = " ".join([", ".join(sorted(parameter.opts, key=len)), *value, *required])
    yield from _wrapped(head, width, _INDENT, _TEXT_INDENT)
    for line in (parameter.help or "").splitlines():
        yield from _wrapped(line, width, _TEXT_INDENT)


def _commands(group: TyperGroup, ctx: Any, width: int) -> Iterator[str]:  # noqa: ANN401 - as above
    """Yield one entry per command, the first sentence of its help beside its name."""
    names = group.list_commands(ctx)
    column = _INDENT + max(map(len, names)) + 2
    yield from ("", "Commands:")
    for name in names:
        command = group.get_command(ctx, name)
        summary = (command.help or "").split("\n\n")[0] if command else ""
        lines = list(_wrapped(summary, width, column))
        yield (f"{' ' * _INDENT}{name}".ljust(column) + lines[0].lstrip()).rstrip()
        yield from lines[1:]


def _notes(parameters: list[Any], width: int) -> Iterator[str]:
    """Yield what the kinds of values on the page look like."""
    kinds = {parameter.metavar for parameter in parameters}
    notes = [note for kind, note in _FORMS.items() if kind in kinds]
    if notes:
        yield ""
    for note in notes:
        yield from _wrapped(note, width)


def _wrapped(text: str, width: int, indent: int = 0, hanging: int = 0) -> list[str]:
    """Return *text* as lines of at most *width*; a word is never broken, however long it is.

    Words that are glued together part where they would be longer than a line.
    """
    room = width - (hanging or indent)
    words = text.split(" ")
    text = " ".join(word if len(word) <= room else word.replace(GLUE, " ") for word in words)
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (hanging or indent),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(GLUE, " ") for line in lines] or [""]
