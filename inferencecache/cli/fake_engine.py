"""``inferencecache fake-engine``: an engine that publishes what it is told to."""

import inspect
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from inferencecache.cli.options import settings_command
from inferencecache.settings.fake_engine import FakeEngineCommandSettings

if TYPE_CHECKING:
    from inferencecache.app.fake_engine_run import Source

FAILED: Final = 1


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("fake-engine")(_command())


def _declared(
    *,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Steps to play: a YAML list, or JSON lines."
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Requests to serve, in the Mooncake format."
        ),
    ] = None,
) -> None:
    """Take what is not a setting."""


def _command() -> Callable[..., None]:
    """Return a function with the options above and one per setting."""
    own = inspect.signature(_declared).parameters

    def command(**options: object) -> None:
        files = {name: cast("Path | None", options.pop(name)) for name in own}
        run = settings_command(FakeEngineCommandSettings, partial(fake_engine, files))
        run(**cast("dict[str, str | None]", options))

    empty = settings_command(FakeEngineCommandSettings, partial(fake_engine, {}))
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # functions take it
        [*own.values(), *inspect.signature(empty).parameters.values()]
    )
    command.__doc__ = fake_engine.__doc__
    return command


def fake_engine(files: dict[str, Path | None], settings: FakeEngineCommandSettings) -> None:
    """Publish KV cache events like an engine of the chosen release, without any model.

    Plays a script, a trace or generated prompts, answers replays and serves a metrics page.
    Prints where it is reached, then one EXPECT line per key that an index must hold.
    """
    from inferencecache.app.fake_engine_run import Source, run_fake_engine
    from inferencecache.transport.listen import ListenError

    try:
        run_fake_engine(_source(Source, files), settings, _write)
    except ListenError as error:
        sys.stderr.write(f"inferencecache: error: {error}\n")
        raise typer.Exit(FAILED) from error


def _source(kind: "type[Source]", files: dict[str, Path | None]) -> "Source":
    if files["script"] is not None and files["trace"] is not None:
        raise typer.BadParameter("give --script or --trace, not both")
    return kind(script=files["script"], trace=files["trace"])


def _write(line: str) -> None:
    """Print at once: whoever reads may be waiting for the line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
