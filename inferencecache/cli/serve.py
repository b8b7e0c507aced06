"""``inferencecache serve``: run the server until a signal ends it."""

import os

import typer

from inferencecache.cli.options import settings_command
from inferencecache.settings.server import ServerSettings


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("serve")(settings_command(ServerSettings, serve))


def serve(settings: ServerSettings) -> None:
    """Run the cache plane: gRPC for engines and gateways, HTTP for health and metrics."""
    # The C core would write lines of its own form to standard error; our log says the same.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from inferencecache.app.process import run_process  # noqa: PLC0415 - keeps --help fast

    raise typer.Exit(run_process(settings))
