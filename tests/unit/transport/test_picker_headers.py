"""Plugins see the headers of a request, and no credential among them."""

import pytest

from inferencecache.transport.picker_headers import passed_headers


class Called:
    """A call with metadata.

    Args:
        metadata: What its caller sent.
    """

    def __init__(self, *metadata: tuple[str, str | bytes]) -> None:
        self._metadata = metadata

    def invocation_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        """Return the metadata."""
        return self._metadata


@pytest.mark.parametrize(
    "name",
    [
        "api-key",
        "apikey",
        "authentication",
        "authorization",
        "cf-access-jwt-assertion",
        "cookie",
        "ocp-apim-subscription-key",
        "proxy-authorization",
        "set-cookie",
        "x-access-key",
        "x-amz-credential",
        "x-amz-security-token",
        "x-amz-signature",
        "x-amzn-oidc-data",
        "x-api-key",
        "x-api_key",
        "x-auth",
        "x-auth-token",
        "x-client-secret",
        "x-csrf-token",
        "x-forwarded-access-token",
        "x-functions-key",
        "x-goog-api-key",
        "x-password",
    ],
)
def test_credentials_are_left_out_by_name(name: str) -> None:
    """Whatever product the header belongs to."""
    assert passed_headers(Called((name, "s"), ("x-other", "v"))) == {"x-other": "v"}


@pytest.mark.parametrize("value", ["Bearer abc", "bearer abc", " Basic YTpi", "Digest a=b"])
def test_credentials_are_left_out_by_value(value: str) -> None:
    """A scheme of HTTP makes a credential of any header."""
    assert passed_headers(Called(("x-anything", value))) == {}


@pytest.mark.parametrize(
    "name",
    [
        "idempotency-key",
        "x-author",
        "x-cache-key",
        "x-design",
        "x-gateway-inference-fairness-id",
        "x-keyword",
        "x-max-tokens",
        "x-request-id",
        "x-session-id",
        "x-tokenizer",
    ],
)
def test_other_names_are_passed(name: str) -> None:
    """Those that routing may depend on are no credentials."""
    assert passed_headers(Called((name, "v"))) == {name: "v"}


def test_values_of_one_name_are_joined_and_the_calls_own_left_out() -> None:
    """As HTTP joins them; binary values are none."""
    called = Called(
        ("x-a", "1"),
        ("x-a", "2"),
        ("x-b-bin", b"\0"),
        ("te", "trailers"),
        ("user-agent", "u"),
        ("content-type", "application/grpc"),
        ("grpc-accept-encoding", "gzip"),
        ("x-c", "bearers of news"),
    )
    assert passed_headers(called) == {"x-a": "1,2", "x-c": "bearers of news"}
