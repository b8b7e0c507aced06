"""Parameters of plugins: a model per type, and what is wrong with those that do not fit it."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

import msgspec
from msgspec import inspect

from inferencecache.errors import ConfigError

_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(.*?)`")
_MISSING_FIELD: Final = re.compile(r"Object missing required field `(.*?)`")
_NO_CHOICE: Final = "Invalid enum value"
_AT: Final = re.compile(r" - at `(?:key in )?\$(.*?)`$", re.DOTALL)
_STEPS: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


class PluginParameters(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True
):
    """The parameters of a type of plugins; those that have none use this class as it is.

    Members are written in camel case; give them limits with ``Annotated[int, msgspec.Meta(ge=1)]``.
    """


ParametersT = TypeVar("ParametersT", bound=PluginParameters)


def read_parameters(
    value: Mapping[str, object], model: type[ParametersT], field: str
) -> ParametersT:
    """Return *value* as *model*.

    Args:
        value: As the configuration has it.
        model: What the type of the plugin takes.
        field: Where it stands, for errors.

    Raises:
        ConfigError: It does not fit.
    """
    try:
        return msgspec.convert(value, model)
    except msgspec.ValidationError as error:
        raise _explained(str(error), value, model, field) from None


def nearest(name: str, known: Mapping[str, object] | list[str]) -> str:
    """Return in words what *name* may have been meant to be, and what there is."""
    close = get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"{close[0]}, which is nearest; " if close else ""
    return f"{hint}one of {', '.join(sorted(known))}" if known else "nothing: there are none"


def _explained(
    message: str, value: object, model: type[PluginParameters], field: str
) -> ConfigError:
    """Return *message*, as the library writes it, as an error of ours."""
    found = _AT.search(message)
    path = found[1] if found else ""
    what = message[: found.start()] if found else message
    unknown, missing = _UNKNOWN_FIELD.search(what), _MISSING_FIELD.search(what)
    if unknown:
        known = [each.encode_name for each in msgspec.structs.fields(model)] if not path else []
        allowed = nearest(unknown[1], known) if known else "no such parameter"
        return ConfigError(field=f"{field}{path}", value=unknown[1], allowed=allowed)
    if missing:
        return ConfigError(field=f"{field}{path}.{missing[1]}", value=None, allowed="a value")
    allowed = _choices(model, path) if what.startswith(_NO_CHOICE) else ""
    allowed = allowed or what.removeprefix("Expected ").replace("`", "")
    return ConfigError(field=f"{field}{path}", value=_value_at(value, path), allowed=allowed)


def _choices(model: type[PluginParameters], path: str) -> str:
    """Return in words which values can stand at *path*, empty if that cannot be told."""
    described: inspect.Type | None = inspect.type_info(model)
    for key, _place in _STEPS.findall(path):
        described = _inside(described, key)
    described = _plain(described)
    if isinstance(described, inspect.LiteralType):
        return "one of " + ", ".join(map(str, described.values))
    if isinstance(described, inspect.EnumType):
        return "one of " + ", ".join(str(member.value) for member in described.cls)
    return ""


def _inside(described: inspect.Type | None, key: str) -> inspect.Type | None:
    """Return the type of the member *key*, or of an element where that is empty."""
    outer = _plain(described)
    if key and isinstance(outer, inspect.StructType):
        return next((each.type for each in outer.fields if each.encode_name == key), None)
    return getattr(outer, "item_type", None)


def _plain(described: inspect.Type | None) -> inspect.Type | None:
    """Return a type without its limits, and without the None that it may be."""
    while isinstance(described, (inspect.Metadata, inspect.UnionType)):
        if isinstance(described, inspect.Metadata):
            described = described.type
        else:
            kinds = [each for each in described.types if not isinstance(each, inspect.NoneType)]
            described = kinds[0] if len(kinds) == 1 else None
    return described


def _value_at(value: object, path: str) -> object:
    """Return what stands at *path*, which the library has found."""
    for key, place in _STEPS.findall(path):
        if key and isinstance(value, Mapping):
            value = value.get(key)
        elif place and isinstance(value, list):
            value = value[int(place)]
    return value
