"""``inferencecache explain``: where a running server would send a request, and why."""

import json
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from inferencecache.cli.options import settings_command_with
from inferencecache.errors import ConfigError
from inferencecache.settings.explain import ExplainSettings

_NOWHERE: Final = 1
_CHOSEN: Final = frozenset({"OK", "DEGRADED"})


class ExplainForm(StrEnum):
    """How an explanation is printed."""

    TABLE = "table"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("explain")(settings_command_with(_declared, ExplainSettings, explain))


def _declared(  # noqa: PLR0913 - one per option
    *,
    body: Annotated[
        str,
        typer.Option(metavar="FILE", help="The request's body; - reads it from standard input."),
    ],
    tenant: Annotated[str, typer.Option(metavar="TENANT", help="Whose request it is.")] = "",
    model_pool: Annotated[
        str,
        typer.Option(
            metavar="[NAMESPACE/]POOL",
            help="The pool that a gateway would name; everything if left out.",
        ),
    ] = "",
    qos: Annotated[
        str,
        typer.Option(metavar="CLASS", help="INTERACTIVE, BATCH or DEFERRABLE."),
    ] = "INTERACTIVE",
    request_id: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="The caller's name for the request: it is led elsewhere than where it failed.",
        ),
    ] = "",
    output: Annotated[
        ExplainForm,
        typer.Option("-o", "--output", metavar="|".join(ExplainForm), help="Form of the answer."),
    ] = ExplainForm.TABLE,
) -> None:
    """Take what is no setting."""


def explain(given: Mapping[str, Any], settings: ExplainSettings) -> None:
    """Show where a running server would send a request, and why; it goes nowhere.

    Exit code 0: somewhere; 1: nowhere, or there is no answer.
    """
    from inferencecache.app.explain import ask_server
    from inferencecache.transport.control_page import ControlPageError

    parameters = {
        "tenant": given["tenant"],
        "pool": given["model_pool"],
        "qos": given["qos"],
        "request_id": given["request_id"],
    }
    try:
        answer = ask_server(
            settings.control, _body(given["body"], settings.body.bytes_max), parameters
        )
    except ControlPageError as error:
        sys.stderr.write(f"inferencecache: error: {error}\n")
        raise typer.Exit(_NOWHERE) from error
    if given["output"] is ExplainForm.JSON:
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    else:
        from inferencecache.cli.explain_table import explanation_text

        sys.stdout.write(explanation_text(answer))
    if answer["outcome"] not in _CHOSEN:
        raise typer.Exit(_NOWHERE)


def _body(path: str, bytes_max: int) -> bytes:
    try:
        content = _read(path, bytes_max + 1)
    except OSError as error:
        raise ConfigError(
            field="--body", value=path, allowed=f"a readable file ({error.strerror})"
        ) from error
    if len(content) > bytes_max:
        raise ConfigError(field="--body", value=path, allowed=f"at most {bytes_max:,} bytes")
    return content


def _read(path: str, bytes_max: int) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read(bytes_max)
    with Path(path).open("rb") as file:
        return file.read(bytes_max)
