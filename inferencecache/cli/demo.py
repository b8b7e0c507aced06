"""``inferencecache demo``: the whole of it on one machine, without an engine."""

import sys

import typer

from inferencecache.cli.options import settings_command
from inferencecache.settings.demo import DemoCommandSettings

AGREED = 0
FAILED = 1


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("demo")(settings_command(DemoCommandSettings, demo))


def demo(settings: DemoCommandSettings) -> None:
    """Run three fake engines, their subscribers, a server, a gateway and a provider.

    Prints what to send with curl, then where each request goes and why. Ends with Ctrl-C, or after
    --seconds. Everything is on loopback; authentication is off.
    Exit code 1 if index and engines disagree in the end, or an address is taken.
    """
    from rich.console import Console

    from inferencecache.app.demo import run_demo
    from inferencecache.cli.demo_view import DemoView
    from inferencecache.transport.listen import ListenError

    view = DemoView(Console(file=sys.stdout))
    try:
        with view:
            standing = run_demo(settings.demo, view)
    except ListenError as error:
        flags = "--listen, --engine-control-listen and --control-listen name others"
        refusal = f"cannot listen on {error.address}: {error.reason}; {flags}"
        sys.stderr.write(f"inferencecache: error: {refusal}\n")
        raise typer.Exit(FAILED) from error
    view.ended(standing)
    raise typer.Exit(AGREED if standing.differences == 0 else FAILED)
