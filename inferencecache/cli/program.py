"""Assemble the commands, run one, and turn every usage error into one line and exit code 2.

Each module in ``COMMANDS`` adds one command: it has a function ``register(app)`` and imports what
the command needs only when the command runs, so that ``--help`` stays fast.
"""

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from inferencecache import __version__
from inferencecache.cli import crds, demo, doctor, fake_engine, replay, serve, subscribe
from inferencecache.cli.switches import with_values
from inferencecache.errors import ConfigError

COMMANDS = (demo, replay, serve, subscribe, doctor, fake_engine, crds)
"""The command modules, in the order in which ``--help`` lists them."""

USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Args:
        arguments: What follows the program's name; None takes it from the process.
    """
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line.

    Args:
        arguments: What follows the program's name.

    Returns:
        The exit code: 2 for wrong usage or settings, otherwise the command's own.
    """
    command = typer.main.get_command(build())
    try:
        code = command.main(
            with_values(arguments), prog_name="inferencecache", standalone_mode=False
        )
    except (typer.TyperException, ConfigError) as error:
        _complain(error.format_message() if isinstance(error, typer.TyperException) else str(error))
        return USAGE_ERROR
    except typer.Abort:
        return 130
    return code if isinstance(code, int) else 0


def _complain(message: str) -> None:
    """Write *message* as one line; it is empty when the help text has said it all."""
    if message:
        sys.stderr.write(f"inferencecache: error: {' '.join(message.split())}\n")


def build() -> typer.Typer:
    """Return the program with all its commands."""
    app = typer.Typer(
        help="The cache plane for LLM fleets: where is a prompt's KV cache warm?",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for module in COMMANDS:
        module.register(app)
    return app


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer's callback signature
    if wanted:
        typer.echo(f"inferencecache {__version__}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Hold the options that come before a command."""
