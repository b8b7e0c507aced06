"""Command-line options made from settings, so that no flag is written down twice."""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from inferencecache.cli.help_page import GLUE
from inferencecache.settings.file import read_settings_file
from inferencecache.settings.knob import Knob, KnobKind, env_of, knobs_of
from inferencecache.settings.loader import Sources, groups_of, load_settings
from inferencecache.settings.value import write

SettingsT = TypeVar("SettingsT")

CONFIG_FLAG = "config"


def settings_command(
    settings_class: type[SettingsT], run: Callable[[SettingsT], None]
) -> Callable[..., None]:
    """Return a function for ``app.command`` with one option per setting.

    Args:
        settings_class: A dataclass of settings groups.
        run: What to do with the loaded settings.
    """

    def command(**options: str | None) -> None:
        flags = {name.replace("_", "-"): text for name, text in options.items()}
        path = flags.pop(CONFIG_FLAG) or os.environ.get(env_of(CONFIG_FLAG))
        file = read_settings_file(Path(path)) if path else None
        run(load_settings(settings_class, Sources(flags=flags, environ=os.environ, file=file)))

    signature = inspect.Signature(list(_parameters(settings_class)))
    command.__signature__ = signature  # type: ignore[attr-defined] # functions take attributes
    command.__doc__ = run.__doc__
    return command


def settings_command_with(
    declared: Callable[..., None],
    settings_class: type[SettingsT],
    run: Callable[[Mapping[str, Any], SettingsT], None],
) -> Callable[..., None]:
    """Return a function for ``app.command`` with parameters of its own besides the settings.

    Args:
        declared: Has those parameters; never called.
        settings_class: A dataclass of settings groups.
        run: What to do with their values by name, and with the loaded settings.
    """
    own = inspect.signature(declared, eval_str=True).parameters

    def command(**given: Any) -> None:  # noqa: ANN401 - as declared
        values = {name: given.pop(name) for name in own}
        settings_command(settings_class, partial(run, values))(**given)

    settings = _parameters(settings_class)
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # functions take it
        [*own.values(), *settings]
    )
    command.__doc__ = run.__doc__
    return command


def _parameters(settings_class: type) -> Iterator[inspect.Parameter]:
    yield _parameter(
        CONFIG_FLAG,
        metavar="FILE",
        help=f"YAML file of settings, keyed by flag; flags and variables win over it.\n"
        f"(env{GLUE}{env_of(CONFIG_FLAG)})",
    )
    for group_name, group in groups_of(settings_class):
        for knob in knobs_of(group):
            yield _parameter(
                knob.flag,
                metavar="|".join(knob.choices) or knob.kind.name,
                help=_help(knob),
                rich_help_panel=f"{group_name.capitalize()} settings",
            )


def _parameter(flag: str, **option: Any) -> inspect.Parameter:  # noqa: ANN401 - typer's keywords
    declared = typer.Option(f"--{flag}", show_default=False, **option)
    return inspect.Parameter(
        flag.replace("-", "_"),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, declared],
    )


def _help(knob: Knob) -> str:
    """Return what the setting is and, on a line of its own, its default and its variable."""
    default = write(knob, knob.default) or '""'
    unit = knob.unit if knob.kind in {KnobKind.INTEGER, KnobKind.NUMBER} else ""
    standard = " ".join(filter(None, (default, unit)))
    return f"{knob.help}\n(default {standard}, env{GLUE}{knob.env})"
