"""From when until when a certificate is valid.

Rules of this file: it reads what OpenSSL has taken for a certificate. OpenSSL does not look at the
dates of what it serves with, and so takes those that are none, too.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from inferencecache.clock import NS_PER_S
from inferencecache.transport.tls_leaf import fields_of_leaf, values

_VALIDITY: Final = 3
"""After serial number, signature and issuer."""

_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_DIGITS: Final = {
    _UTC_TIME: re.compile(rb"\d{12}Z"),
    _GENERALIZED_TIME: re.compile(rb"\d{14}Z"),
}
"""The only form of each that certificates may have."""

_FIRST_OF_LAST_CENTURY: Final = b"50"
_NO_DATES: Final = "no certificate with dates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """Both ends belong to it.

    Attributes:
        not_before_s: From when on, in Unix seconds.
        not_after_s: Until when, in Unix seconds.
    """

    not_before_s: int
    not_after_s: int

    def objection(self, now_ns: int) -> str:
        """Return why a certificate is of no use at *now_ns*, Unix nanoseconds; empty if it is."""
        now_s = now_ns // NS_PER_S
        if now_s < self.not_before_s:
            return f"is not valid yet: it will be from {_text(self.not_before_s)} on"
        if now_s > self.not_after_s:
            return f"has expired: it was valid until {_text(self.not_after_s)}"
        return ""


def validity_of(chain: bytes) -> Validity:
    """Return from when until when the first certificate of *chain*, PEM, is valid.

    Those behind it do not count: clients find another way around one that has expired.

    Complexity: O(bytes of that certificate).

    Raises:
        ValueError: It is none, or has no dates.
    """
    try:
        _, dates = fields_of_leaf(chain)[_VALIDITY]
        not_before_s, not_after_s = (_unix_s(tag, text) for tag, text in values(dates))
    except (IndexError, ValueError) as error:
        raise ValueError(_NO_DATES) from error
    return Validity(not_before_s=not_before_s, not_after_s=not_after_s)


def _unix_s(tag: int, text: bytes) -> int:
    """Return a time of ASN.1 in Unix seconds.

    Raises:
        ValueError: It is none.
    """
    digits = _DIGITS.get(tag)
    if digits is None or not digits.fullmatch(text):
        raise ValueError(text)
    if tag == _UTC_TIME:
        text = (b"19" if text >= _FIRST_OF_LAST_CENTURY else b"20") + text
    moment = datetime.strptime(text.decode(), "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return int(moment.timestamp())


def _text(unix_s: int) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
