"""Assemble the commands, run one, and turn every usage error into one line and exit code 2.

Each module in ``COMMANDS`` adds one command: it has a function ``register(app)`` and imports what
the command needs only when the command runs, so that ``--help`` stays fast.
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from inferencecache import __version__
from inferencecache.cli import (
    crds,
    demo,
    doctor,
    explain,
    fake_engine,
    gateway,
    get,
    replay,
    serve,
    simulate,
    subscribe,
)
from inferencecache.cli.help_page import PlainHelpCommand, PlainHelpGroup
from inferencecache.cli.switches import with_values
from inferencecache.errors import ConfigError

COMMANDS = (
    demo,
    replay,
    simulate,
    serve,
    gateway,
    subscribe,
    get,
    explain,
    doctor,
    fake_engine,
    crds,
)
"""The command modules, in the order in which ``--help`` lists them."""

USAGE_ERROR = 2

HELP = ("--help",)
"""What a call without any argument stands for."""

FIRST_STEPS = (
    "Start here: `inferencecache replay` shows on a real request trace what the cache plane gains, "
    "`inferencecache serve` runs one. `inferencecache COMMAND --help` explains a command."
)
"""The end of the program's own help page."""


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
        The exit code: 2 for wrong usage or settings and when there is nothing to do, otherwise
        the command's own.
    """
    # gRPC reads this when it is imported. Its core would write lines of its own form to standard
    # error, about closed connections for the most part; what matters our own messages say.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    command = typer.main.get_command(build())
    try:
        code = command.main(
            with_values(arguments or HELP), prog_name="inferencecache", standalone_mode=False
        )
    except typer.TyperException as error:
        _complain(f"{error.format_message()}{_where_to_look(error)}")
        return USAGE_ERROR
    except ConfigError as error:
        _complain(str(error))
        return USAGE_ERROR
    except typer.Abort:
        return 130
    if not arguments:
        return USAGE_ERROR
    return code if isinstance(code, int) else 0


def _complain(message: str) -> None:
    """Write *message* as one line."""
    sys.stderr.write(f"inferencecache: error: {' '.join(message.split())}\n")


def _where_to_look(error: typer.TyperException) -> str:
    """Return which help page answers the question that *error* leaves open."""
    context = getattr(error, "ctx", None)
    return f" (try `{context.command_path} --help`)" if context is not None else ""


def build() -> typer.Typer:
    """Return the program with all its commands."""
    app = typer.Typer(
        help="The cache plane for LLM fleets: where is a prompt's KV cache warm?",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        cls=PlainHelpGroup,
        epilog=FIRST_STEPS,
    )
    app.callback()(_root)
    for module in COMMANDS:
        module.register(app)
    for command in app.registered_commands:
        command.cls = PlainHelpCommand
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
