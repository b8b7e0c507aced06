"""Read what people write for a setting, and write it back; one rule for every source.

Flags and environment variables are texts (``read_text``), the YAML file has types of its own
(``read_typed``). Both end in the same bounds.
"""

import math
import re
from typing import Final

from inferencecache.settings.address import ADDRESS_FORM, BindAddress
from inferencecache.settings.duration import DURATION_FORM, format_duration, parse_duration
from inferencecache.settings.knob import Knob, KnobKind

_FORMS: Final = {
    KnobKind.INTEGER: "a whole number",
    KnobKind.NUMBER: "a number",
    KnobKind.BOOLEAN: "true or false",
    KnobKind.TEXT: "a text",
    KnobKind.DURATION: DURATION_FORM,
    KnobKind.ADDRESS: ADDRESS_FORM,
}
_TYPES: Final[dict[KnobKind, tuple[type, ...]]] = {
    KnobKind.INTEGER: (int,),
    KnobKind.NUMBER: (int, float),
    KnobKind.BOOLEAN: (bool,),
    KnobKind.TEXT: (str,),
    KnobKind.DURATION: (str,),
    KnobKind.ADDRESS: (str,),
}
_INTEGER: Final = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?", re.ASCII)


def read_text(knob: Knob, text: str) -> object:
    """Return the value of *knob* that *text* names.

    Raises:
        ValueError: *text* does not name one, or it is out of bounds.
    """
    if knob.choices:
        return _choose(knob, text)
    match knob.kind:
        case KnobKind.INTEGER:
            _require(_INTEGER.fullmatch(text) is not None, knob)
            value: object = int(text)
        case KnobKind.NUMBER:
            _require(_NUMBER.fullmatch(text) is not None, knob)
            value = float(text)
        case KnobKind.BOOLEAN:
            _require(text in {"true", "false"}, knob)
            value = text == "true"
        case _:
            value = _read_worded(knob, text)
    return _bounded(knob, value)


def read_typed(knob: Knob, value: object) -> object:
    """Return the value of *knob* that a typed document gives.

    Args:
        knob: The setting.
        value: A value as YAML or JSON types it; durations and addresses are texts.

    Raises:
        ValueError: *value* has another type, or is out of bounds.
    """
    if knob.kind is KnobKind.DURATION and value == 0 and not isinstance(value, bool):
        return _bounded(knob, 0)
    if isinstance(value, bool):
        _require(knob.kind is KnobKind.BOOLEAN, knob)
        return value
    _require(isinstance(value, _TYPES[knob.kind]), knob)
    if isinstance(value, str):
        return read_text(knob, value)
    return _bounded(knob, float(str(value)) if knob.kind is KnobKind.NUMBER else value)


def write(knob: Knob, value: object) -> str:
    """Return *value* as a person would write it for *knob*."""
    if knob.kind is KnobKind.DURATION and isinstance(value, int):
        return format_duration(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def allowed(knob: Knob) -> str:
    """Return what *knob* accepts, for an error message or a reference page."""
    if knob.choices:
        return "one of " + ", ".join(knob.choices)
    bounds = [
        f"{word} {_bound(knob, limit)}"
        for word, limit in (("at least", knob.minimum), ("at most", knob.maximum))
        if limit is not None
    ]
    return ", ".join([_FORMS[knob.kind], *bounds])


def _bound(knob: Knob, limit: float) -> str:
    if knob.kind is KnobKind.DURATION:
        return format_duration(int(limit))
    return f"{int(limit) if limit == int(limit) else limit:,}"


def _choose(knob: Knob, text: str) -> object:
    word = text.strip().lower()
    _require(not word or word in knob.choices, knob)
    return word or knob.default


def _read_worded(knob: Knob, text: str) -> object:
    """Read the kinds whose texts need a parser of their own."""
    if knob.kind is KnobKind.DURATION:
        try:
            return parse_duration(text)
        except ValueError:
            raise ValueError(allowed(knob)) from None
    if knob.kind is KnobKind.ADDRESS:
        BindAddress.parse(text)
    return text


def _bounded(knob: Knob, value: object) -> object:
    if isinstance(value, (int, float)):
        _require(math.isfinite(value), knob)
        _require(knob.minimum is None or value >= knob.minimum, knob)
        _require(knob.maximum is None or value <= knob.maximum, knob)
    return value


def _require(holds: bool, knob: Knob) -> None:  # noqa: FBT001 - a condition, not an option
    if not holds:
        raise ValueError(allowed(knob))
