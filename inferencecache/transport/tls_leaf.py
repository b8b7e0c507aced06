"""What a server certificate must be like for gRPC clients to use it.

The C core loads some certificates with which no handshake of its clients succeeds: it offers fewer
signatures than OpenSSL does, and wants a key that may sign. So the kinds that were seen to work are
listed here, and everything else is refused. ``tests/contract/test_tls_keys.py`` holds this list
against real handshakes.

Rules of this file: OpenSSL has read the file before, so what is no certificate is none of those it
serves, and is refused.
"""

import re
import ssl
from collections.abc import Iterator
from typing import Final

USABLE: Final = "an RSA key, or an elliptic one on P-256 or P-384, that may sign"

_LEAF: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)

_P256: Final = bytes.fromhex("06072a8648ce3d020106082a8648ce3d030107")
_P384: Final = bytes.fromhex("06072a8648ce3d020106052b81040022")
_RSA: Final = bytes.fromhex("06092a864886f70d0101010500")
_KEYS: Final = frozenset({_P256, _P384, _RSA})
"""Contents of the AlgorithmIdentifiers that work."""

_KEY_USAGE: Final = bytes.fromhex("0603551d0f")
_MAY_SIGN: Final = 0x80
"""The bit digitalSignature, in the first byte after the count of unused bits."""

_VERSION_TAG: Final = 0xA0
_EXTENSIONS_TAG: Final = 0xA3
_LONG_LENGTH: Final = 0x80
_NO_CERTIFICATE: Final = "no certificate"

_KEY: Final = 5
"""After serial number, signature, issuer, validity and subject."""


def is_usable(chain: bytes) -> bool:
    """Tell whether clients can use the first certificate of *chain*, PEM.

    Complexity: O(bytes of that certificate).
    """
    try:
        fields = fields_of_leaf(chain)
        (_, algorithm), *_ = values(fields[_KEY][1])
        return algorithm in _KEYS and _may_sign(fields)
    except (ValueError, IndexError):  # what looks like a certificate and is none
        return False


def fields_of_leaf(chain: bytes) -> list[tuple[int, bytes]]:
    """Return tag and content of what is signed in the first certificate of *chain*, PEM.

    The version, which need not be there, is left out.

    Complexity: O(bytes of that certificate).

    Raises:
        ValueError: It is none.
        IndexError: It is none.
    """
    leaf = _LEAF.search(chain)
    if leaf is None:
        raise ValueError(_NO_CERTIFICATE)
    der = ssl.PEM_cert_to_DER_cert(leaf[0].decode("ascii", "ignore"))
    (_, certificate), *_ = values(der)
    (_, signed), *_ = values(certificate)
    fields = list(values(signed))
    return fields[1:] if fields[0][0] == _VERSION_TAG else fields


def _may_sign(fields: list[tuple[int, bytes]]) -> bool:
    """Tell whether the key may sign; without a word on it, it may."""
    tag, wrapped = fields[-1]
    if tag != _EXTENSIONS_TAG:
        return True
    (_, extensions), *_ = values(wrapped)
    for _, extension in values(extensions):
        if extension.startswith(_KEY_USAGE):
            *_, (_, bits) = values(extension)
            (_, usage), *_ = values(bits)
            return len(usage) > 1 and bool(usage[1] & _MAY_SIGN)
    return True


def values(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of each value in *der*.

    Raises:
        IndexError: It ends in the middle of one.
    """
    at = 0
    while at < len(der):
        tag, length = der[at], der[at + 1]
        at += 2
        if length & _LONG_LENGTH:
            digits = length - _LONG_LENGTH
            length = int.from_bytes(der[at : at + digits])
            at += digits
        yield tag, der[at : at + length]
        at += length
