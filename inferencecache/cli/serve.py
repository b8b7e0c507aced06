"""``inferencecache serve``: run the server until a signal ends it."""

import typer

from inferencecache.cli.options import settings_command
from inferencecache.settings.server import ServerSettings


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("serve")(settings_command(ServerSettings, serve))


def serve(settings: ServerSettings) -> None:
    """Run the cache plane: gRPC for engines and gateways, HTTP for health and metrics."""
    from inferencecache.app.process import run_process

    raise typer.Exit(run_process(settings))
