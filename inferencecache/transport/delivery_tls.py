"""Credentials of a client towards servers, read once."""

from typing import Final, Protocol

import grpc

from inferencecache.errors import ConfigError
from inferencecache.transport.read_file import read_plain_file

_FILE_BYTES_MAX: Final = 4_194_304


class ServerTls(Protocol):
    """How servers are checked, and what they are shown; empty for nothing."""

    @property
    def ca_file(self) -> str:
        """Certificate authorities of the servers."""
        ...

    @property
    def cert_file(self) -> str:
        """The client's certificate chain."""
        ...

    @property
    def key_file(self) -> str:
        """Its private key."""
        ...


def server_credentials(
    settings: ServerTls, flags: str = "server"
) -> grpc.ChannelCredentials | None:
    """Return what connections are made with; None means plaintext.

    Args:
        settings: The files.
        flags: What the names of their flags begin with.

    Raises:
        ConfigError: A file cannot be read or is empty, or one is given that is of no use without
            another.
    """
    ca_flag, cert_flag, key_flag = (
        f"{flags}-{name}" for name in ("ca-file", "client-cert-file", "client-key-file")
    )
    if bool(settings.cert_file) != bool(settings.key_file):
        absent = key_flag if settings.cert_file else cert_flag
        raise ConfigError(field=absent, value="", allowed="a file: certificate and key are a pair")
    if not settings.ca_file:
        if settings.cert_file:
            raise ConfigError(
                field=cert_flag, value=settings.cert_file, allowed=f"no value without {ca_flag}"
            )
        return None
    return grpc.ssl_channel_credentials(
        _read(ca_flag, settings.ca_file),
        _read(key_flag, settings.key_file) if settings.key_file else None,
        _read(cert_flag, settings.cert_file) if settings.cert_file else None,
    )


def _read(flag: str, path: str) -> bytes:
    try:
        content = read_plain_file(path, _FILE_BYTES_MAX)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise ConfigError(field=flag, value=path, allowed=f"a readable file: {reason}") from error
    if not content.strip():
        raise ConfigError(field=flag, value=path, allowed="a file that is not empty")
    return content
