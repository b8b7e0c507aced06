"""The names a client's certificate gives it, each with its kind in front.

Only certificates that TLS has checked against the authority get this far.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

_PROPERTIES: Final = (("peer_uri", "uri:"), ("peer_dns", "dns:"), ("x509_common_name", "cn:"))
"""Property of a gRPC peer -> kind of name."""

_SAN_KINDS: Final = {"URI": "uri:", "DNS": "dns:"}


def grpc_peer_names(properties: Mapping[str, Iterable[bytes]]) -> frozenset[str]:
    """Return the names of a gRPC peer, given as the library describes it."""
    return frozenset(
        kind + value.decode("utf-8", "replace")
        for name, kind in _PROPERTIES
        for value in properties.get(name, ())
    )


def http_peer_names(certificate: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the names in a certificate as Python's TLS describes it; none without one."""
    return frozenset(_names(certificate or {}))


def _names(certificate: Mapping[str, Any]) -> Iterator[str]:
    for kind, value in certificate.get("subjectAltName", ()):
        if kind in _SAN_KINDS:
            yield _SAN_KINDS[kind] + value
    for part in certificate.get("subject", ()):
        for name, value in part:
            if name == "commonName":
                yield "cn:" + value
