"""Settings of TLS on the gRPC listener, and the rule that a pair of files is given whole."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.errors import ConfigError
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The files the gRPC listener proves itself with, and those it checks clients by."""

    cert_file: str = knob(
        "",
        flag="tls-cert-file",
        kind=KnobKind.TEXT,
        help="Certificate chain (PEM) of the gRPC listener; without one it serves plaintext.",
    )
    key_file: str = knob(
        "",
        flag="tls-key-file",
        kind=KnobKind.TEXT,
        help="Private key (PEM) of that certificate.",
    )
    client_ca_file: str = knob(
        "",
        flag="tls-client-ca-file",
        kind=KnobKind.TEXT,
        help="Certificate authorities (PEM) of clients; with it every client needs a certificate "
        "and a TenantAccess that names it.",
    )
    check_interval_ns: int = knob(
        NS_PER_S,
        flag="tls-check-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=10 * NS_PER_MS,
        maximum=600 * NS_PER_S,
        help="Look for changed certificates, keys and client authorities of all listeners this "
        "often.",
    )


def check_tls_files(flag_prefix: str, cert_file: str, key_file: str, client_ca_file: str) -> None:
    """Refuse half of a key pair, and a client authority without a certificate to show.

    Args:
        flag_prefix: What the three flags start with, for example ``tls``.
        cert_file: Path or empty.
        key_file: Path or empty.
        client_ca_file: Path or empty.

    Raises:
        ConfigError: The files do not make sense together.
    """
    cert_flag, key_flag = f"--{flag_prefix}-cert-file", f"--{flag_prefix}-key-file"
    if bool(cert_file) != bool(key_file):
        absent = key_flag if cert_file else cert_flag
        raise ConfigError(field=absent, value="", allowed=f"a file: {cert_flag} needs {key_flag}")
    if client_ca_file and not cert_file:
        raise ConfigError(
            field=f"--{flag_prefix}-client-ca-file",
            value=client_ca_file,
            allowed=f"no value without {cert_flag}",
        )
