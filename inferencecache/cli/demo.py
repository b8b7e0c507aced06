"""``inferencecache demo``: the whole of it on one machine, without an engine."""

import sys

import typer

from inferencecache.cli.options import settings_command
from inferencecache.settings.demo import DemoCommandSettings

AGREED = 0
DISAGREED = 1


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("demo")(settings_command(DemoCommandSettings, demo))


def demo(settings: DemoCommandSettings) -> None:
    """Run three fake engines, their subscribers, a server and a gateway, and watch them.

    Ends after --seconds or with Ctrl-C. Everything is on loopback; authentication is off.
    Exit code 1 if index and engines disagree in the end.
    """
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast

    from inferencecache.app.demo import run_demo  # noqa: PLC0415 - the same
    from inferencecache.cli.demo_view import DemoView  # noqa: PLC0415 - the same

    view = DemoView(Console(file=sys.stdout))
    with view:
        standing = run_demo(settings.demo, view)
    view.ended(standing)
    raise typer.Exit(AGREED if standing.differences == 0 else DISAGREED)
