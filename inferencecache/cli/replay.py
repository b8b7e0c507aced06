"""``inferencecache replay``: what cache-aware routing gains on a real request trace."""

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, cast

import typer

from inferencecache.cli.options import settings_command
from inferencecache.cli.replay_output import Output
from inferencecache.settings.replay import ReplaySettings


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCommandSettings:
    """The settings of the command, by group."""

    replay: ReplaySettings = dataclasses.field(default_factory=ReplaySettings)


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("replay")(_command())


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
) -> Output:
    """Take what is not a setting."""
    return Output(trace=trace, as_json=as_json, plot=plot)


def _command() -> Callable[..., None]:
    """Return a function with the options above and one per setting."""
    own = inspect.signature(_declared).parameters

    def command(**options: object) -> None:
        output = Output(
            trace=cast("Path | None", options.pop("trace")),
            as_json=bool(options.pop("as_json")),
            plot=cast("Path | None", options.pop("plot")),
        )
        run = settings_command(ReplayCommandSettings, partial(replay, output))
        run(**cast("dict[str, str | None]", options))

    settings = inspect.signature(settings_command(ReplayCommandSettings, _nothing)).parameters
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # functions take it
        [*own.values(), *settings.values()]
    )
    command.__doc__ = replay.__doc__
    return command


def _nothing(_settings: ReplayCommandSettings) -> None:
    """Stand in for a command whose options alone are wanted."""


def replay(output: Output, settings: ReplayCommandSettings) -> None:
    """Play a request trace against a simulated fleet and compare ways of routing it.

    Every request is looked up over gRPC and served by one simulated replica.
    Round robin and one infinite cache see the same requests.
    """
    from inferencecache.cli.replay_run import run  # noqa: PLC0415 - keeps --help fast

    raise typer.Exit(run(output, settings.replay))
