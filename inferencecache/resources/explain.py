"""Say what is wrong with a value, all of it, in the words of its schema.

The models decide what is accepted, and fast; this slower walk over the schema that was made from
them finds the words when they refuse. Both say the same of every value.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from inferencecache.resources.flaw import UNKNOWN_KEY, Flaw, joined, shown
from inferencecache.resources.schema import Schema

_TYPES: Final[dict[str, tuple[type | tuple[type, ...], str]]] = {
    "object": (dict, "an object"),
    "array": (list, "a list"),
    "string": (str, "a text"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": (bool, "true or false"),
}


def flaws_of(value: object, schema: Schema, path: str) -> Iterator[Flaw]:
    """Yield what *schema* does not accept about *value*.

    Args:
        value: As :mod:`documents` makes it.
        schema: As :mod:`schema` makes it.
        path: Where the value stands.
    """
    name = schema.get("type")
    if name is None:
        return
    python_type = _TYPES[name][0]
    if not isinstance(value, python_type) or (
        name in {"integer", "number"} and isinstance(value, bool)
    ):
        yield Flaw(field=path, value=shown(value), allowed=allowed_by(schema))
    elif isinstance(value, dict):
        yield from _members(value, schema, path)
    elif not _is_within(value, schema):
        yield Flaw(field=path, value=_measured(value, schema), allowed=allowed_by(schema))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from flaws_of(item, schema["items"], joined(path, place))


def _members(value: dict[str, object], schema: Schema, path: str) -> Iterator[Flaw]:
    """Yield what is wrong with the members of an object."""
    known: dict[str, Schema] = schema.get("properties", {})
    required: list[str] = schema.get("required", [])
    others: Schema | bool = schema.get("additionalProperties", False)
    for name in required:
        if name not in value:
            yield Flaw(field=joined(path, name), value="nothing", allowed=allowed_by(known[name]))
    for name, member in value.items():
        where = joined(path, name)
        if name in known:
            if member is not None or name in required:
                yield from flaws_of(member, known[name], where)
        elif isinstance(others, dict):
            yield from flaws_of(member, others, where)
        else:
            yield Flaw(field=where, value=UNKNOWN_KEY, allowed=_one_of(known))


def _one_of(known: dict[str, Schema]) -> str:
    """Return which keys there are in the place of an unknown one."""
    return f"one of the keys {', '.join(sorted(known))}" if known else "no keys"


def _is_within(value: object, schema: Schema) -> bool:
    """Tell whether a value of the right type keeps the limits."""
    return all(
        holds(value, schema[keyword]) for keyword, holds in _LIMITS.items() if keyword in schema
    )


def _measured(value: object, schema: Schema) -> str:
    """Return *value* in words, with the size that a list has, or that is too large."""
    if isinstance(value, list):
        return f"a list of {len(value):,} elements" if value else "an empty list"
    is_long = isinstance(value, str) and len(value) > schema.get("maxLength", len(value))
    size = f"{len(value):,} characters, " if isinstance(value, str) and is_long else ""
    return size + shown(value)


@cache
def _whole(pattern: str) -> re.Pattern[str]:
    """Return *pattern* such that its end means the end of the text, a newline included."""
    return re.compile(pattern.removesuffix("$") + (r"\Z" if pattern.endswith("$") else ""))


_LIMITS: Final[dict[str, Callable[..., bool]]] = {
    "minimum": lambda value, limit: value >= limit,
    "maximum": lambda value, limit: value <= limit,
    "minLength": lambda value, limit: len(value) >= limit,
    "maxLength": lambda value, limit: len(value) <= limit,
    "minItems": lambda value, limit: len(value) >= limit,
    "maxItems": lambda value, limit: len(value) <= limit,
    "enum": lambda value, choices: value in choices,
    "pattern": lambda value, pattern: _whole(pattern).search(value) is not None,
}


def allowed_by(schema: Schema) -> str:
    """Return in words what *schema* accepts."""
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    parts = [_TYPES[schema["type"]][1]] if "type" in schema else ["any value"]
    if "minimum" in schema:
        parts.append(f"from {schema['minimum']} to {schema['maximum']}")
    if "minLength" in schema or "minItems" in schema:
        parts.append("not empty")
    if "maxItems" in schema:
        parts.append(f"at most {schema['maxItems']} elements")
    if "maxLength" in schema:
        parts.append(f"at most {schema['maxLength']} characters")
    if "pattern" in schema:
        parts.append(f"like {schema['pattern']}")
    text = ", ".join(parts)
    return f"{text}, for example {shown(schema['example'])}" if "example" in schema else text
