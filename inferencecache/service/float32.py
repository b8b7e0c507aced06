"""Single-precision numbers as JSON text: the fewest digits that read back as the same float32."""

import struct
from typing import Final

_FLOAT32: Final = struct.Struct("<f")
_DIGITS_MAX: Final = 9
_PLAIN_EXPONENT_MIN: Final = -6
_PLAIN_EXPONENT_MAX: Final = 21
_LARGEST: Final = 3.4028234663852886e38


def float32_text(value: float) -> str:
    """Return *value*, rounded to single precision, as a JSON number.

    >>> float32_text(0.10000000149011612), float32_text(1e-7), float32_text(2.0)
    ('0.1', '1e-7', '2')

    Args:
        value: Any number; beyond the range it becomes the largest float32, NaN becomes 0.
    """
    if value != value:  # noqa: PLR0124 - the one value that differs from itself
        return "0"
    rounded = _round(min(max(value, -_LARGEST), _LARGEST))
    if rounded == 0:
        return "0"
    text = next(
        text
        for text in (f"{rounded:.{digits}e}" for digits in range(_DIGITS_MAX))
        if _round(float(text)) == rounded
    )
    mantissa, _, exponent = text.partition("e")
    return _assemble(mantissa.replace(".", ""), int(exponent))


def _round(value: float) -> float:
    try:
        return float(_FLOAT32.unpack(_FLOAT32.pack(value))[0])
    except OverflowError:
        # A decimal just above the largest float32 reads back as nothing.
        return float("inf")


def _assemble(signed_digits: str, exponent: int) -> str:
    """Write digits d.ddd times ten to *exponent* without needless zeros."""
    sign = "-" if signed_digits.startswith("-") else ""
    digits = signed_digits.lstrip("-").rstrip("0")
    if not _PLAIN_EXPONENT_MIN <= exponent < _PLAIN_EXPONENT_MAX:
        point = "." if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{point}{digits[1:]}e{exponent:+d}".replace("e-0", "e-")
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"
