"""``inferencecache replay``: what cache-aware routing gains on a real request trace."""

import dataclasses

import typer

from inferencecache.cli.play_command import play_command
from inferencecache.cli.replay_output import Output
from inferencecache.settings.replay import ReplaySettings


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCommandSettings:
    """The settings of the command, by group."""

    replay: ReplaySettings = dataclasses.field(default_factory=ReplaySettings)


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("replay")(play_command(ReplayCommandSettings, replay))


def replay(output: Output, settings: ReplayCommandSettings) -> None:
    """Play a request trace against a simulated fleet and compare ways of routing it.

    Every request is looked up over gRPC and served by one simulated replica.
    Round robin and one infinite cache see the same requests.
    """
    from inferencecache.cli.replay_run import run

    raise typer.Exit(run(output, settings.replay))
