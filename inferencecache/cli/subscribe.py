"""``inferencecache subscribe``: follow engines and tell servers what they hold."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from inferencecache.cli.options import settings_command
from inferencecache.settings.sources_file import read_sources
from inferencecache.settings.subscribe import SubscribeSettings


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("subscribe")(_command())


def _declared(
    *,
    sources: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="YAML list of engines, each a mapping of flags to values; what an entry leaves "
            "out is taken from the other flags.",
        ),
    ] = None,
) -> None:
    """Take what is not one text."""


def _command() -> Callable[..., None]:
    """Return a function with the options above and one per setting."""
    own = inspect.signature(_declared).parameters

    def command(**options: object) -> None:
        sources = cast("Path | None", options.pop("sources"))
        servers = cast("list[str] | None", options.pop("server"))
        texts = cast("dict[str, str | None]", options)
        texts["server"] = ",".join(servers) if servers else None
        settings_command(SubscribeSettings, partial(subscribe, sources))(**texts)

    settings = inspect.signature(settings_command(SubscribeSettings, _nothing)).parameters
    repeatable = _repeatable(settings["server"])
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # functions take it
        [*own.values(), *{**settings, "server": repeatable}.values()]
    )
    command.__doc__ = subscribe.__doc__
    return command


def _repeatable(option: inspect.Parameter) -> inspect.Parameter:
    """Return *option* as one that may be given several times."""
    (declared,) = get_args(option.annotation)[1:]
    return option.replace(annotation=Annotated[list[str] | None, declared])


def _nothing(_settings: SubscribeSettings) -> None:
    """Stand in for a command whose options alone are wanted."""


def subscribe(sources: Path | None, settings: SubscribeSettings) -> None:
    """Follow engines' KV events and report to servers what the engines hold.

    Runs beside one engine, or with --sources for many.
    """
    from inferencecache.app.producer_process import run_producer

    engine = settings.source()
    found = (engine,) if sources is None else read_sources(sources, engine)
    raise typer.Exit(
        run_producer(
            settings.producer(found),
            settings.once,
            settings.collector,
            settings.ending,
            settings.logs,
        )
    )
