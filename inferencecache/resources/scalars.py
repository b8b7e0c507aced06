"""What a plain YAML scalar means: null, a boolean, a number or a text, as ``kubectl`` reads it.

YAML 1.1 words and number forms count, except the two that surprise people in a resource: dates
and base-60 numbers are texts. Quoted scalars are texts and do not come here.
"""

import re
from functools import lru_cache
from typing import Final

Scalar = str | int | float | bool | None

SPECIAL_STARTS: Final = frozenset("+-.0123456789~nNtTfFyYoO")
"""What every scalar begins with that is not empty and no text."""

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER: Final = re.compile(
    r"[-+]?(?:0b[01_]{1,64}|0x[0-9a-fA-F_]{1,20}|0o?[0-7_]{1,24}|0|[1-9][0-9_]{0,39})", re.ASCII
)
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]{1,400}|[0-9]{1,400}(?:\.[0-9]{0,400})?)(?:[eE][-+]?[0-9]{1,9})?", re.ASCII
)
_NOT_FINITE: Final = {
    sign + form: float(sign + "inf") for sign in ("", "+", "-") for form in (".inf", ".Inf", ".INF")
} | {form: float("nan") for form in (".nan", ".NaN", ".NAN")}


def plain_value(text: str) -> Scalar:
    """Return what the plain scalar *text* stands for."""
    if text and text[0] not in SPECIAL_STARTS:
        return text
    return _resolve(text)


@lru_cache(maxsize=4_096)
def _resolve(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return _integer(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        return float(text)
    return _NOT_FINITE.get(text, text)


def _integer(text: str) -> int:
    """Return the integer; a leading zero means octal, as YAML 1.1 has it."""
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.removeprefix("+"))
    for prefix, radix in (("0b", 2), ("0x", 16), ("0o", 8), ("0", 8)):
        rest = digits.removeprefix(prefix)
        if rest != digits:
            return sign * int(rest or "0", radix)
    return sign * int(digits)
