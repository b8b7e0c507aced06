"""``inferencecache simulate``: what the picker does to the time to the first token."""

import typer

from inferencecache.cli.play_command import play_command
from inferencecache.cli.replay_output import Output
from inferencecache.settings.simulate import SimulateCommandSettings


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("simulate")(play_command(SimulateCommandSettings, simulate))


def simulate(output: Output, settings: SimulateCommandSettings) -> None:
    """Play requests against simulated engines in virtual time and compare ways of placing them.

    The picker is the real one, with its index; engines and time are simulated.
    The same seed and settings give the same table.
    """
    from inferencecache.cli.simulate_run import run

    raise typer.Exit(run(output, settings))
