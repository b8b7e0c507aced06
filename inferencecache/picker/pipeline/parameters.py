"""Parameters of plugins: a model per type, and what is wrong with those that do not fit it."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

import msgspec

from inferencecache.errors import ConfigError

_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(.*?)`")
_MISSING_FIELD: Final = re.compile(r"Object missing required field `(.*?)`")
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
    allowed = what.removeprefix("Expected ").replace("`", "")
    return ConfigError(field=f"{field}{path}", value=_value_at(value, path), allowed=allowed)


def _value_at(value: object, path: str) -> object:
    """Return what stands at *path*, which the library has found."""
    for key, place in _STEPS.findall(path):
        if key and isinstance(value, Mapping):
            value = value.get(key)
        elif place and isinstance(value, list):
            value = value[int(place)]
    return value
