"""One description per setting; flags, variables, file keys and the reference derive from it."""

import dataclasses
from collections.abc import Iterator
from enum import StrEnum
from typing import Any


class KnobKind(StrEnum):
    """How a setting is written outside Python."""

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TEXT = "text"
    DURATION = "duration"
    """Kept as integer nanoseconds; written ``30m``, ``1h30m``, ``250ms``."""
    ADDRESS = "address"
    """Kept as text; written ``:9090``, ``host:port``, ``[::1]:0``."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One setting: its names, default, unit, bounds and help.

    Attributes:
        name: Attribute name in its settings class.
        flag: Command-line flag without the dashes; the file key is the same.
        env: Environment variable.
        kind: How values are written.
        default: Value when nothing is given, in *unit*.
        unit: What the number counts, empty for text and booleans.
        minimum: Smallest accepted value, or None.
        maximum: Largest accepted value, or None.
        choices: Accepted texts in lower case, empty for any.
        help: One sentence for people.
    """

    name: str
    flag: str
    env: str
    kind: KnobKind
    default: object
    unit: str
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    help: str


def knob(  # noqa: PLR0913 - one keyword per column of the reference page
    default: object,
    *,
    flag: str,
    help: str,  # noqa: A002 - the word every command-line library uses
    kind: KnobKind,
    unit: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:  # noqa: ANN401 - a dataclass field stands in for its value's type
    """Declare a setting as the default of a dataclass field."""
    metadata = {
        "flag": flag,
        "help": help,
        "kind": kind,
        "unit": unit,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
    }
    return dataclasses.field(default=default, metadata=metadata)


def env_of(flag: str) -> str:
    """Return the environment variable that stands for *flag*, which is given without dashes."""
    return "INFERENCECACHE_" + flag.upper().replace("-", "_")


def knobs_of(settings_class: type) -> Iterator[Knob]:
    """Yield the settings declared by *settings_class*, in order."""
    for field in dataclasses.fields(settings_class):
        meta = field.metadata
        yield Knob(
            name=field.name,
            flag=meta["flag"],
            env=env_of(meta["flag"]),
            kind=meta["kind"],
            default=field.default,
            unit=meta["unit"],
            minimum=meta["minimum"],
            maximum=meta["maximum"],
            choices=meta["choices"],
            help=meta["help"],
        )
