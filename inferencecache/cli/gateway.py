"""``inferencecache gateway``: a reverse proxy that asks a picker where requests go."""

import typer

from inferencecache.cli.options import settings_command
from inferencecache.settings.gateway import GatewaySettings


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("gateway")(settings_command(GatewaySettings, gateway))


def gateway(settings: GatewaySettings) -> None:
    """Take inference requests over HTTP and send each where the picker says.

    The reference client of the picker's contract.
    """
    from inferencecache.app.gateway_process import run_gateway

    raise typer.Exit(run_gateway(settings))
