"""When a certificate is valid, read from its own bytes."""

import datetime as dt
import ssl
from collections import Counter

import pytest
from certificates import Authority

from inferencecache.clock import NS_PER_S
from inferencecache.transport.tls_validity import Validity, validity_of

FIRST = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Return an authority."""
    return Authority()


@pytest.mark.parametrize(
    ("not_before", "not_after", "expected"),
    [
        ("1950-01-01T00:00:00", "1999-12-31T23:59:59", (-631_152_000, 946_684_799)),
        ("2000-01-01T00:00:00", "2038-01-19T03:14:08", (946_684_800, 2**31)),
        # The first moment that needs four digits of the year, and the last there is.
        ("2049-12-31T23:59:59", "2050-01-01T00:00:00", (2_524_607_999, 2_524_608_000)),
        ("2024-02-29T12:00:00", "9999-12-31T23:59:59", (1_709_208_000, 253_402_300_799)),
    ],
)
def test_dates_are_those_of_the_certificate(
    authority: Authority, not_before: str, not_after: str, expected: tuple[int, int]
) -> None:
    """In either of the two forms, in all centuries."""
    dates = tuple(dt.datetime.fromisoformat(each + "+00:00") for each in (not_before, not_after))
    chain = authority.server((dates[0], dates[1])).certificate + authority.pem
    validity = validity_of(chain)
    assert (validity.not_before_s, validity.not_after_s) == expected


def test_objections_name_the_moment() -> None:
    """Before and after, not within."""
    validity = Validity(not_before_s=10, not_after_s=20)
    found = [validity.objection(second * NS_PER_S) for second in (9, 10, 20, 21)]
    assert found == [
        "is not valid yet: it will be from 1970-01-01T00:00:10Z on",
        "",
        "",
        "has expired: it was valid until 1970-01-01T00:00:20Z",
    ]


@pytest.mark.parametrize(
    "other",
    [b"991301000000Z", b"9912312359+00", b"99123123595Z ", b"\xff" * 13, b"991231235960Z"],
)
def test_what_is_no_date_is_refused(authority: Authority, other: bytes) -> None:
    """OpenSSL serves with it, and clients refuse it."""
    when = dt.datetime(1999, 12, 31, 23, 59, 58, tzinfo=dt.UTC)
    der = ssl.PEM_cert_to_DER_cert(authority.server((FIRST, when)).certificate.decode())
    text = b"991231235958Z"
    assert der.count(text) == 1
    damaged = ssl.DER_cert_to_PEM_cert(der.replace(text, other)).encode()
    with pytest.raises(ValueError, match="no certificate with dates"):
        validity_of(damaged)


@pytest.mark.parametrize("chain", [b"", b"no certificate"])
def test_what_is_no_certificate_is_refused(chain: bytes) -> None:
    """It has no dates."""
    with pytest.raises(ValueError, match="no certificate"):
        validity_of(chain)


def test_a_damaged_certificate_breaks_nothing(authority: Authority) -> None:
    """Whatever byte of it is another, there are dates or a ValueError."""
    whole = ssl.PEM_cert_to_DER_cert(authority.server().certificate.decode())
    verdicts = Counter[bool]()
    for at in range(len(whole)):
        der = bytearray(whole)
        der[at] ^= 0xFF
        try:
            validity_of(ssl.DER_cert_to_PEM_cert(bytes(der)).encode())
        except ValueError:
            verdicts[False] += 1
        else:
            verdicts[True] += 1
    assert verdicts.keys() == {True, False}
