"""Which backends are taken, and what is said of the others."""

import pytest
from resource_texts import document, load

from inferencecache.resources import BackendAuthSpec, auth_header_of

FILE = {"secret_file": "k"}
URL = "baseURL: 'https://api.example.com/v1/'"


def backend(spec: str) -> str:
    """Return a GatewayBackend."""
    text = document("GatewayBackend", "b", f"{{{spec}}}")
    return text.replace("inferencecache.io", "gateway.linkerd.io")


@pytest.mark.parametrize(
    "spec",
    [
        URL,
        "baseURL: 'http://127.0.0.1:8000'",
        "baseURL: 'https://[::1]:8443/a.b/%7Ec'",
        f"{URL}, auth: {{secretFile: k}}",
        f"{URL}, auth: {{secretFile: a/b.key, header: x-api-key, scheme: ''}}",
        f"{URL}, tls: {{caFile: ca.pem, serverName: other.example.com}}",
        f"{URL}, tls: {{certFile: c.pem, keyFile: c.key}}",
    ],
)
def test_backends_that_are_taken(spec: str) -> None:
    """With whatever they need to be let in."""
    state = load({"b.yaml": backend(spec)})
    assert not state.errors
    assert len(state.objects) == 1


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ("auth: {secretFile: k}", "spec.baseURL"),
        ("baseURL: 'ftp://a'", "spec.baseURL"),
        ("baseURL: 'https://user:secret@a'", "spec.baseURL"),
        ("baseURL: 'https://a/p?key=secret'", "spec.baseURL"),
        ("baseURL: 'https://a:65536'", "spec.baseURL"),
        ("baseURL: 'https://a:0'", "spec.baseURL"),
        ("baseURL: 'https://a/b/../c'", "spec.baseURL"),
        ("baseURL: 'https://a/%2e%2E'", "spec.baseURL"),
        (f"{URL}, auth: {{secretFile: /etc/passwd}}", "spec.auth.secretFile"),
        (f"{URL}, auth: {{secretFile: a/../../b}}", "spec.auth.secretFile"),
        (f"{URL}, auth: {{secretFile: .hidden}}", "spec.auth.secretFile"),
        (f"{URL}, auth: {{secretFile: k, header: Host}}", "spec.auth.header"),
        (f"{URL}, auth: {{secretFile: k, header: 'a b'}}", "spec.auth.header"),
        (f"{URL}, auth: {{secretFile: k, key: secret}}", "spec.auth.key"),
        (f"{URL}, tls: {{certFile: c.pem}}", "spec.tls.keyFile"),
        (f"{URL}, tls: {{keyFile: c.key}}", "spec.tls.certFile"),
        (f"{URL}, tls: {{insecureSkipVerify: true}}", "spec.tls.insecureSkipVerify"),
        ("baseURL: 'http://a', tls: {caFile: ca.pem}", "spec.tls"),
    ],
)
def test_backends_that_are_refused(spec: str, field: str) -> None:
    """The error names the field, and never shows what may be a secret."""
    state = load({"b.yaml": backend(spec)})
    assert not state.objects
    assert field in {error.field for error in state.errors}
    assert "secret@" not in str(state.errors)
    assert "key=secret" not in str(state.errors)


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ({}, ("Authorization", "Bearer ")),
        ({"header": "authorization"}, ("authorization", "Bearer ")),
        ({"scheme": "Basic"}, ("Authorization", "Basic ")),
        ({"scheme": ""}, ("Authorization", "")),
        ({"header": "api-key"}, ("api-key", "")),
        ({"header": "api-key", "scheme": "Key"}, ("api-key", "Key ")),
    ],
)
def test_what_stands_in_front_of_a_key(auth: dict[str, str], expected: tuple[str, str]) -> None:
    """Bearer where nothing else is said and the header is the usual one."""
    assert auth_header_of(BackendAuthSpec(**auth, **FILE)) == expected
