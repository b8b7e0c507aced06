"""Durations as people write them: ``30m``, ``1h30m``, ``250ms``, ``-1.5s``, ``0``."""

import re
from decimal import Decimal
from typing import Final

DURATION_FORM: Final = "a duration such as 250ms, 30s, 30m or 1h30m"

_UNIT_NS: Final = {
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "µs": 1_000,
    "ns": 1,
}
_PART: Final = re.compile(r"(\d{1,19}(?:\.\d{0,18})?|\.\d{1,18})(ms|us|µs|ns|h|m|s)", re.ASCII)
_WHOLE: Final = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)", re.ASCII)
_LONGEST_NS: Final = 2**63 - 1


def parse_duration(text: str) -> int:
    """Return the nanoseconds that *text* names.

    Args:
        text: Numbers with the units h, m, s, ms, us, µs or ns, in any order, with an optional
            sign; a bare ``0`` needs no unit.

    Raises:
        ValueError: *text* has another form or exceeds 2^63-1 ns, about 292 years.
    """
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(DURATION_FORM)
    total = sum(Decimal(number) * _UNIT_NS[unit] for number, unit in _PART.findall(text))
    if total > _LONGEST_NS:
        raise ValueError("a duration of at most 292 years")
    return -int(total) if text.startswith("-") else int(total)


def format_duration(duration_ns: int) -> str:
    """Return the shortest usual spelling of *duration_ns*; ``parse_duration`` reads it back."""
    if duration_ns == 0:
        return "0"
    sign, rest_ns = ("-", -duration_ns) if duration_ns < 0 else ("", duration_ns)
    parts = []
    for unit in ("h", "m", "s", "ms", "us", "ns"):
        count, rest_ns = divmod(rest_ns, _UNIT_NS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return sign + "".join(parts)
