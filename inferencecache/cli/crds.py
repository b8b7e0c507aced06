"""``inferencecache crds``: write the CRDs and JSON Schemas of the resource kinds."""

from pathlib import Path
from typing import Annotated

import typer

from inferencecache.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("crds")(crds)


def crds(
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="Directory to write into.")
    ],
) -> None:
    """Write the CustomResourceDefinition and the JSON Schema of every resource kind."""
    from inferencecache.resources import product_kinds
    from inferencecache.resources.crd import generated_crds

    for name, text in generated_crds(product_kinds()).items():
        path = output / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                field="--output",
                value=str(output),
                allowed=f"a directory to write into ({error.strerror})",
            ) from error
        typer.echo(path)
