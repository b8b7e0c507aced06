"""Values of ours as JSON for people and pages, with keys in camel case."""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

_WORD_START: Final = re.compile(r"_([a-z0-9])")


def json_text(value: object) -> str:
    """Return *value* as indented JSON with a newline at its end.

    Args:
        value: Made of data classes, structs, named tuples, mappings, sequences and plain values.

    Complexity: O(parts of *value*).
    """
    return json.dumps(plain(value), indent=1) + "\n"


def plain(value: object) -> Any:  # noqa: ANN401 - whatever JSON can say
    """Return *value* made of dicts, lists and plain values only."""
    names = _names(value)
    if names is not None:
        return {_camel(name): plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (frozenset, set)):
        return sorted(map(plain, value))
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [plain(part) for part in value]
    return value


def present(value: object) -> dict[str, Any]:
    """Return the members of *value*, a data class, that are not None."""
    return {name: part for name, part in plain(value).items() if part is not None}


def _names(value: object) -> Sequence[str] | None:
    """Return the names of the parts of a record; None where *value* is something else."""
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return tuple(value._fields)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [field.name for field in dataclasses.fields(value)]
    return None


def _camel(name: str) -> str:
    return _WORD_START.sub(lambda found: found[1].upper(), name)
