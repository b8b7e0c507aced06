"""Settings of authentication on the control listener, and the check that nothing is left open."""

import re
from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.errors import ConfigError
from inferencecache.settings.control import ControlSettings
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """Who may use the control listener; at least one way in must be named, or none wanted."""

    allowed_controller_sa: str = knob(
        "",
        flag="allowed-controller-sa",
        kind=KnobKind.TEXT,
        help="Kubernetes user whose tokens are accepted, system:serviceaccount:<namespace>:<name>.",
    )
    insecure_disable_auth: bool = knob(
        default=False,
        flag="insecure-disable-auth",
        kind=KnobKind.BOOLEAN,
        help="Let everybody who reaches the control listener use it.",
    )
    controller_audience: str = knob(
        "inferencecache.io/controller",
        flag="controller-audience",
        kind=KnobKind.TEXT,
        help="Audience of Kubernetes tokens for /snapshot, /probe and /debug.",
    )
    policy_audience: str = knob(
        "inferencecache.io/policy",
        flag="policy-audience",
        kind=KnobKind.TEXT,
        help="Audience of Kubernetes tokens for /policy.",
    )
    token_file: str = knob(
        "",
        flag="control-token-file",
        kind=KnobKind.TEXT,
        help="File of accepted bearer tokens, one SHA-256 in hexadecimal a line.",
    )
    client_names: str = knob(
        "",
        flag="control-client-names",
        kind=KnobKind.TEXT,
        help="Client certificates that are accepted, by name: uri:, dns: or cn: and the name, "
        "with commas between.",
    )
    cache_ttl_ns: int = knob(
        30 * NS_PER_S,
        flag="auth-cache-ttl",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="A token that Kubernetes has accepted is not asked about again for this long.",
    )
    cache_entries_max: int = knob(
        32,
        flag="auth-cache-max-entries",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=1,
        maximum=100_000,
        help="Accepted tokens remembered per endpoint.",
    )
    failures_max: int = knob(
        10,
        flag="auth-max-failures",
        kind=KnobKind.INTEGER,
        unit="attempts",
        minimum=1,
        help="Failed attempts of one peer within the window before it is told 429.",
    )
    failure_window_ns: int = knob(
        60 * NS_PER_S,
        flag="auth-failure-window",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Time over which the failed attempts of one peer are counted.",
    )
    peers_max: int = knob(
        1_024,
        flag="auth-max-peers",
        kind=KnobKind.INTEGER,
        unit="peers",
        minimum=1,
        maximum=1_000_000,
        help="Peers whose failed attempts are remembered; beyond it the oldest is forgotten.",
    )
    review_timeout_ns: int = knob(
        5 * NS_PER_S,
        flag="token-review-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Longest wait for the Kubernetes API's word on a token.",
    )
    service_account_dir: str = knob(
        "/var/run/secrets/kubernetes.io/serviceaccount",
        flag="service-account-dir",
        kind=KnobKind.TEXT,
        help="Where Kubernetes mounts this server's own token and the API's authority.",
    )

    def names(self) -> frozenset[str]:
        """Return the accepted certificate names, each with its kind in front."""
        return frozenset(name for part in self.client_names.split(",") if (name := part.strip()))


class ControlAuthError(ConfigError):
    """The control listener would be open, or closed, by accident.

    Args:
        message: The whole text.
        field: The flag it is about.
        value: Its value.
    """

    def __init__(self, message: str, *, field: str, value: object) -> None:
        super().__init__(field=field, value=value, allowed=message)
        self.message = message

    def __str__(self) -> str:
        return self.message


_SA = "--allowed-controller-sa"
_WAYS_IN = (
    f"{_SA} for Kubernetes, --control-token-file for bearer tokens, "
    "--control-tls-client-ca-file for client certificates"
)
_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
# A namespace is one label of at most 63 characters, a name any number of them, 253 in all.
_SERVICE_ACCOUNT = re.compile(
    rf"system:serviceaccount:(?=.{{1,63}}:){_LABEL}:(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*"
)
_NAME_KINDS = ("uri:", "dns:", "cn:")


def check_control_auth(auth: AuthSettings, control: ControlSettings) -> None:
    """Refuse settings that leave open who may use the control listener.

    Raises:
        ControlAuthError: With the reason as its text.
    """
    ways = [auth.allowed_controller_sa, auth.token_file, control.tls_client_ca_file]
    if auth.insecure_disable_auth:
        if any([*ways, auth.client_names]):
            raise ControlAuthError(
                f"--insecure-disable-auth and authentication are mutually exclusive; drop it or "
                f"all of {_WAYS_IN}",
                field="--insecure-disable-auth",
                value=True,
            )
        return
    if not any(ways) and not auth.names():
        raise ControlAuthError(
            f"missing {_SA}: say who may use the control listener ({_WAYS_IN}), or let everybody "
            "in with --insecure-disable-auth",
            field=_SA,
            value="",
        )
    if auth.allowed_controller_sa:
        _check_kubernetes(auth)
    _check_client_names(auth, control)


def _check_kubernetes(auth: AuthSettings) -> None:
    named = auth.allowed_controller_sa
    if named != named.strip():
        raise ControlAuthError(
            f"{_SA} has leading or trailing whitespace: {named!r}", field=_SA, value=named
        )
    if not _SERVICE_ACCOUNT.fullmatch(named):
        raise ControlAuthError(
            f"{_SA}: {named!r} is no service account; expected "
            "system:serviceaccount:<namespace>:<name>",
            field=_SA,
            value=named,
        )
    for flag, audience in (
        ("--controller-audience", auth.controller_audience),
        ("--policy-audience", auth.policy_audience),
    ):
        if not audience.strip():
            raise ControlAuthError(f"{flag} must not be blank", field=flag, value=audience)
        if audience != audience.strip():
            raise ControlAuthError(
                f"{flag} has leading or trailing whitespace: {audience!r}",
                field=flag,
                value=audience,
            )


def _check_client_names(auth: AuthSettings, control: ControlSettings) -> None:
    flag = "--control-client-names"
    names = auth.names()
    if bool(names) != bool(control.tls_client_ca_file):
        raise ControlAuthError(
            f"{flag} and --control-tls-client-ca-file need one another: the authority says which "
            "certificates are real, the names say which of them may come in",
            field=flag,
            value=auth.client_names,
        )
    for name in sorted(names):
        if not name.startswith(_NAME_KINDS) or name in _NAME_KINDS:
            raise ControlAuthError(
                f"{flag}: {name!r} is not allowed; expected uri:, dns: or cn: and a name",
                field=flag,
                value=name,
            )
