"""What a body means by a number of tokens, however it is written."""

from math import ceil, isnan
from typing import Final

from msgspec import Raw

from inferencecache.picker.request.envelope import ABSENT, read_value

BEYOND_ALL_LIMITS: Final = 2**63 - 1
"""Stands for every number that is larger, and for those too long to be read."""

_BYTES_MAX: Final = 1_024


def whole_number(raw: Raw) -> int | None:
    """Return the number in *raw*, as engines would read it: ``51``, ``51.0``, ``5.1e1``, ``"51"``.

    A fraction is rounded up, so that no way of writing a number makes it smaller.

    Args:
        raw: A value of a valid document, or :data:`ABSENT`.

    Returns:
        At most :data:`BEYOND_ALL_LIMITS`; None where there is no number.
    """
    if raw is ABSENT:
        return None
    written = bytes(raw)
    if written[:1] not in _STARTS:
        return None
    if len(written) > _BYTES_MAX:
        return BEYOND_ALL_LIMITS
    text = read_value(raw, str) if written[:1] == b'"' else written.decode()
    return None if text is None else _number(text)


def _number(text: str) -> int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if isnan(number):
        return None
    if abs(number) >= BEYOND_ALL_LIMITS:
        return BEYOND_ALL_LIMITS if number > 0 else -BEYOND_ALL_LIMITS
    return ceil(number)


_STARTS: Final = frozenset(bytes([byte]) for byte in b'"-0123456789')
