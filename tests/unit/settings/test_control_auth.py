"""Nothing is open by accident: what must be said about the control listener, and in which order."""

from dataclasses import replace

import pytest

from inferencecache.errors import ConfigError
from inferencecache.settings.auth import AuthSettings, check_control_auth
from inferencecache.settings.control import ControlSettings
from inferencecache.settings.tls import check_tls_files

SA = "system:serviceaccount:cache:controller"
NO_SERVICE_ACCOUNTS = [
    "foo",
    "cache:controller",
    "system:serviceaccount:cache",
    "system:serviceaccount:cache:",
    "system:serviceaccount::controller",
    f"{SA}:more",
    f"{SA}, {SA}",
    "system:serviceaccounts:cache:controller",
    "system:serviceaccount:Cache:controller",
    "system:serviceaccount:ca.che:controller",
    "system:serviceaccount:cache:-controller",
    f"system:serviceaccount:{'n' * 64}:controller",
    f"system:serviceaccount:cache:{'n' * 254}",
]
PLAIN = ControlSettings()
MTLS = ControlSettings(tls_client_ca_file="ca.pem")
NAMES = "uri:spiffe://x/y, dns:a.example,cn:admin"


@pytest.mark.parametrize(
    ("auth", "control"),
    [
        (AuthSettings(insecure_disable_auth=True), PLAIN),
        (AuthSettings(insecure_disable_auth=True, controller_audience=" "), PLAIN),
        (AuthSettings(allowed_controller_sa=SA), PLAIN),
        (AuthSettings(allowed_controller_sa="system:serviceaccount:a-1:b.c-2.3"), PLAIN),
        (
            AuthSettings(allowed_controller_sa=f"system:serviceaccount:{'n' * 63}:{'x' * 253}"),
            PLAIN,
        ),
        (AuthSettings(token_file="tokens"), PLAIN),
        (AuthSettings(token_file="tokens", policy_audience=""), PLAIN),
        (AuthSettings(client_names=NAMES), MTLS),
        (AuthSettings(client_names=NAMES, allowed_controller_sa=SA, token_file="t"), MTLS),
    ],
)
def test_one_way_in_is_enough(auth: AuthSettings, control: ControlSettings) -> None:
    """Each way alone, all of them together, or openly none."""
    check_control_auth(auth, control)


@pytest.mark.parametrize(
    ("auth", "control", "words"),
    [
        (
            AuthSettings(allowed_controller_sa=SA, insecure_disable_auth=True),
            PLAIN,
            "mutually exclusive",
        ),
        (
            AuthSettings(token_file="t", insecure_disable_auth=True),
            PLAIN,
            "mutually exclusive",
        ),
        (AuthSettings(client_names=NAMES, insecure_disable_auth=True), MTLS, "mutually exclusive"),
        (AuthSettings(client_names=NAMES, insecure_disable_auth=True), PLAIN, "mutually exclusive"),
        (AuthSettings(), PLAIN, "missing --allowed-controller-sa"),
        (AuthSettings(controller_audience=" "), PLAIN, "missing --allowed-controller-sa"),
        (AuthSettings(allowed_controller_sa=f" {SA}"), PLAIN, "whitespace"),
        (AuthSettings(allowed_controller_sa=f"{SA}\n"), PLAIN, "whitespace"),
        (AuthSettings(allowed_controller_sa=" ", policy_audience=""), PLAIN, "controller-sa has"),
        *(
            (AuthSettings(allowed_controller_sa=named), PLAIN, f"{named!r} is no service account")
            for named in NO_SERVICE_ACCOUNTS
        ),
        (AuthSettings(allowed_controller_sa="foo", policy_audience=""), PLAIN, "'foo' is no"),
        (
            AuthSettings(allowed_controller_sa=SA, controller_audience="", policy_audience=""),
            PLAIN,
            "--controller-audience must not be blank",
        ),
        (
            AuthSettings(allowed_controller_sa=SA, controller_audience=" a", policy_audience=""),
            PLAIN,
            "--controller-audience has leading or trailing whitespace",
        ),
        (
            AuthSettings(allowed_controller_sa=SA, policy_audience=" \t"),
            PLAIN,
            "--policy-audience must not be blank",
        ),
        (
            AuthSettings(allowed_controller_sa=SA, policy_audience="a "),
            PLAIN,
            "--policy-audience has leading or trailing whitespace",
        ),
        (AuthSettings(), MTLS, "need one another"),
        (AuthSettings(client_names="cn:x"), PLAIN, "need one another"),
        (AuthSettings(client_names=" , "), PLAIN, "missing --allowed-controller-sa"),
        (AuthSettings(client_names=NAMES, allowed_controller_sa=SA), PLAIN, "need one another"),
        (AuthSettings(client_names="admin"), MTLS, "'admin' is not allowed"),
        (AuthSettings(client_names="cn:"), MTLS, "'cn:' is not allowed"),
    ],
)
def test_everything_else_is_refused_in_order(
    auth: AuthSettings, control: ControlSettings, words: str
) -> None:
    """The text says what is wrong first."""
    with pytest.raises(ConfigError) as refused:
        check_control_auth(auth, control)
    assert words in str(refused.value)


def test_names_are_split_at_commas() -> None:
    """White space around them does not count."""
    assert AuthSettings(client_names=NAMES).names() == {
        "uri:spiffe://x/y",
        "dns:a.example",
        "cn:admin",
    }
    assert replace(AuthSettings(), client_names=" , ").names() == frozenset()


@pytest.mark.parametrize(
    ("cert", "key", "client_ca", "words"),
    [
        ("c", "", "", "--tls-key-file: ''"),
        ("", "k", "", "--tls-cert-file: ''"),
        ("", "", "ca", "--tls-client-ca-file: 'ca'"),
    ],
)
def test_tls_files_come_whole(cert: str, key: str, client_ca: str, words: str) -> None:
    """Half a pair would mean plaintext where somebody wanted none."""
    with pytest.raises(ConfigError, match=words):
        check_tls_files("tls", cert, key, client_ca)


@pytest.mark.parametrize("files", [("", "", ""), ("c", "k", ""), ("c", "k", "ca")])
def test_whole_sets_of_files_are_fine(files: tuple[str, str, str]) -> None:
    """None, a pair, or a pair and an authority."""
    check_tls_files("tls", *files)
