"""``inferencecache get``: what can be picked, as ``kubectl get`` would show it."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from inferencecache.cli.options import settings_command_with
from inferencecache.errors import ConfigError
from inferencecache.settings.get import GetSettings

if TYPE_CHECKING:
    from inferencecache.resources import ResourceKind

_NOT_FOUND: Final = 1


class OutputForm(StrEnum):
    """How objects are printed."""

    TABLE = "table"
    WIDE = "wide"
    YAML = "yaml"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to get, and how to show it.

    Attributes:
        what: The kind, as people call it.
        name: The object; None for all.
        namespace: Where it stands.
        everywhere: Whether to look in all namespaces.
        form: How it is printed.
        resources: Directory to read instead of asking a server; None asks.
    """

    what: str
    name: str | None
    namespace: str
    everywhere: bool
    form: OutputForm
    resources: str | None


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("get")(settings_command_with(_declared, GetSettings, _get))


def _declared(  # noqa: PLR0913 - one per option
    what: Annotated[
        str,
        typer.Argument(metavar="KIND", help="providers, workersets or pools."),
    ],
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One object; all if left out.")
    ] = None,
    *,
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", metavar="NAMESPACE", help="Where to look.")
    ] = "default",
    all_namespaces: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="Look everywhere.")
    ] = False,
    output: Annotated[
        OutputForm,
        typer.Option(
            "-o",
            "--output",
            metavar="|".join(OutputForm),
            help="Form of what is found.",
        ),
    ] = OutputForm.TABLE,
    resources: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            show_default=False,
            help="Read this directory instead of asking a server; what traffic decides is not "
            "known then. Files with mistakes are told, and end in exit code 1.",
        ),
    ] = None,
) -> None:
    """Take what is no setting."""


def _get(given: Mapping[str, Any], settings: GetSettings) -> None:
    """Show providers, worker sets or pools with their state, as a running server has them.

    Exit code 0: shown; 1: there is no such object, no answer, or the files have mistakes.
    """
    wanted = Wanted(
        what=given["what"],
        name=given["name"],
        namespace=given["namespace"],
        everywhere=given["all_namespaces"],
        form=given["output"],
        resources=given["resources"],
    )
    get(wanted, settings)


def get(wanted: Wanted, settings: GetSettings) -> None:
    """Print what is wanted; see the command."""
    from inferencecache.app.get import ask_server, read_directory
    from inferencecache.transport.control_page import ControlPageError

    kind = _kind_of(wanted.what)
    try:
        found = (
            ask_server(settings.control)
            if wanted.resources is None
            else read_directory(wanted.resources)
        )
    except ControlPageError as error:
        raise _complaint(str(error)) from error
    for mistake in found.errors:
        sys.stderr.write(f"inferencecache: error: {mistake}\n")
    items = [item for item in found.items if _is_wanted(item, kind, wanted)]
    if wanted.name is not None and not items:
        raise _complaint(f'{kind.plural}.{kind.group} "{wanted.name}" not found')
    _print(items, kind, wanted)
    if found.errors:
        raise typer.Exit(_NOT_FOUND)


def _complaint(message: str) -> typer.Exit:
    sys.stderr.write(f"inferencecache: error: {message}\n")
    return typer.Exit(_NOT_FOUND)


def _kind_of(what: str) -> "ResourceKind[Any]":
    """Return the kind that people call *what*.

    Raises:
        ConfigError: There is none.
    """
    from inferencecache.service.picker_objects import SHOWN_KINDS

    for kind in SHOWN_KINDS:
        short = kind.plural.removeprefix("inference")
        names = {short, short.removesuffix("s"), kind.plural, kind.kind.lower()}
        if what.lower() in {*names, *kind.short_names, f"{kind.plural}.{kind.group}"}:
            return kind
    raise ConfigError(field="KIND", value=what, allowed="providers, workersets or pools")


def _is_wanted(item: dict[str, Any], kind: "ResourceKind[Any]", wanted: Wanted) -> bool:
    metadata = item.get("metadata", {})
    return (
        item.get("kind") == kind.kind
        and (wanted.everywhere or metadata.get("namespace") == wanted.namespace)
        and wanted.name in {None, metadata.get("name")}
    )


def _print(items: list[dict[str, Any]], kind: "ResourceKind[Any]", wanted: Wanted) -> None:
    is_one = wanted.name is not None and len(items) == 1
    shown = items[0] if is_one else {"apiVersion": "v1", "kind": "List", "items": items}
    match wanted.form:
        case OutputForm.JSON:
            sys.stdout.write(json.dumps(shown, indent=2) + "\n")
        case OutputForm.YAML:
            import yaml

            sys.stdout.write(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True))
        case form:
            _print_table(items, kind, wanted, is_wide=form is OutputForm.WIDE)


def _print_table(
    items: list[dict[str, Any]], kind: "ResourceKind[Any]", wanted: Wanted, *, is_wide: bool
) -> None:
    from inferencecache.cli.get_table import table_of

    if not items:
        where = "" if wanted.everywhere else f" in {wanted.namespace} namespace"
        sys.stderr.write(f"No resources found{where}.\n")
        return
    sys.stdout.write(
        table_of(
            items,
            kind,
            datetime.now(UTC),
            is_wide=is_wide,
            with_namespace=wanted.everywhere,
        )
    )
