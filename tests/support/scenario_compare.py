"""Whether an answer is the one a scenario wants: exact, but for the last digits of floats."""

import re
from datetime import UTC, datetime

TOLERANCE = 1e-6
INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")


def is_same(got: object, want: object) -> bool:
    """Return whether *got* is what is wanted, times compared as instants."""
    if isinstance(want, dict):
        if not isinstance(got, dict) or got.keys() != want.keys():
            return False
        return all(is_same(got[key], want[key]) for key in want)
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return False
        return all(map(is_same, got, want))
    if isinstance(want, str):
        return isinstance(got, str) and (got == want or instant(got) == (instant(want) or ()))
    return is_same_number(got, want)


def is_same_number(got: object, want: object) -> bool:
    """Return whether two numbers, booleans or nulls are the same; a boolean is no number."""
    if want is None or isinstance(want, bool) or isinstance(got, bool):
        return got is want
    if not isinstance(got, (int, float)) or not isinstance(want, (int, float)):
        return False
    if isinstance(got, int) and isinstance(want, int):
        return got == want
    return abs(got - want) <= TOLERANCE * max(1.0, abs(want))


def instant(text: str) -> tuple[float, str] | None:
    """Return an RFC 3339 time as whole seconds and its fraction's digits, or None."""
    parts = INSTANT.fullmatch(text)
    if parts is None:
        return None
    seconds, fraction, zone = parts.groups()
    moment = datetime.fromisoformat(seconds + zone.replace("Z", "+00:00"))
    return moment.astimezone(UTC).timestamp(), (fraction or "").rstrip("0")
