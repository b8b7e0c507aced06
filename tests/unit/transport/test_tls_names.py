"""The names of a certificate, as both libraries describe it."""

from inferencecache.transport.tls_names import grpc_peer_names, http_peer_names


def test_a_grpc_peer_has_uris_dns_names_and_a_common_name() -> None:
    """Other properties are no names; what is no text matches nothing sensible."""
    properties = {
        "peer_uri": [b"spiffe://x/a", b"spiffe://x/b"],
        "peer_dns": [b"gw.example"],
        "x509_common_name": [b"gw"],
        "x509_subject_alternative_name": [b"other"],
        "peer_email": [b"a@b"],
    }
    assert grpc_peer_names(properties) == {
        "uri:spiffe://x/a",
        "uri:spiffe://x/b",
        "dns:gw.example",
        "cn:gw",
    }
    assert grpc_peer_names({"x509_common_name": [b"\xff"]}) == {"cn:\ufffd"}
    assert grpc_peer_names({}) == frozenset()


def test_an_http_peer_has_the_same_names() -> None:
    """Addresses and other parts of the subject are no names."""
    certificate = {
        "subject": ((("organizationName", "o"),), (("commonName", "gw"),)),
        "subjectAltName": (
            ("DNS", "gw.example"),
            ("URI", "spiffe://x/a"),
            ("IP Address", "127.0.0.1"),
        ),
    }
    assert http_peer_names(certificate) == {"cn:gw", "dns:gw.example", "uri:spiffe://x/a"}
    assert http_peer_names(None) == http_peer_names({}) == frozenset()
