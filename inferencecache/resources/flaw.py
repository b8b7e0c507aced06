"""What is wrong with a value, in words that any log and any page can carry."""

from dataclasses import dataclass
from typing import Final

_SHOWN_MAX: Final = 60
_HIDDEN: Final = "***"

UNKNOWN_KEY: Final = "an unknown key"
"""What is said of the value of a key that nobody knows: that may be a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """One thing that is wrong inside a document.

    Attributes:
        field: Dotted path, empty for the document itself.
        value: What stands there, as :func:`shown` writes it.
        allowed: What would have been accepted.
        line: Line in the file, from 1, or 0 where it is not known.
    """

    field: str
    value: str
    allowed: str
    line: int = 0


def shown(value: object) -> str:
    """Return *value* as a short ASCII text, without what URLs have before ``@`` and after ``?``.

    >>> shown("ftp://user:password@host/path?key=secret")
    "'ftp://***@host/path?***'"
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = ascii(_without_secrets(value)[:_SHOWN_MAX] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def _without_secrets(text: str) -> str:
    at, query = text.rfind("@"), text.find("?")
    if at >= 0:
        slashes = text.find("//", 0, at)
        text = text[: slashes + 2 if slashes >= 0 else 0] + _HIDDEN + text[at:]
        query = text.find("?")
    return text if query < 0 else text[: query + 1] + _HIDDEN * (query + 1 < len(text))


def joined(path: str, key: str | int) -> str:
    """Return the dotted path of a member or element of what stands at *path*."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{short(key)}" if path else short(key)


def short(key: str) -> str:
    """Return a key as it may stand in a path."""
    return key if len(key) <= _SHOWN_MAX and key.isascii() and key.isprintable() else shown(key)
