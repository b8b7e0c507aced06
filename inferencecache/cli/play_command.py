"""Commands that play a trace: their settings, and the options that are none."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar, cast

import typer

from inferencecache.cli.options import settings_command
from inferencecache.cli.replay_output import Output

SettingsT = TypeVar("SettingsT")


def play_command(
    settings_class: type[SettingsT], play: Callable[[Output, SettingsT], None]
) -> Callable[..., None]:
    """Return a function for ``app.command`` with an option per setting, and those of a result.

    Args:
        settings_class: A dataclass of settings groups.
        play: What to do; its documentation is the command's.
    """
    own = inspect.signature(_declared).parameters

    def command(**options: object) -> None:
        output = Output(
            trace=cast("Path | None", options.pop("trace")),
            as_json=bool(options.pop("as_json")),
            plot=cast("Path | None", options.pop("plot")),
        )
        run = settings_command(settings_class, lambda settings: play(output, settings))
        run(**cast("dict[str, str | None]", options))

    settings = inspect.signature(settings_command(settings_class, _nothing)).parameters
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # functions take it
        [*own.values(), *settings.values()]
    )
    command.__doc__ = play.__doc__
    return command


def _declared(
    trace: Annotated[
        Path | None,
        typer.Argument(
            metavar="TRACE",
            show_default=False,
            help="Trace in the Mooncake format; without one, the trace shipped with the package.",
        ),
    ] = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON and nothing else.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Draw into a .png or .svg file."),
    ] = None,
) -> None:
    """Declare what is not a setting."""


def _nothing(_settings: object) -> None:
    """Stand in for a command whose options alone are wanted."""
