"""Credentials of a producer towards its servers."""

from typing import Final

import grpc

from inferencecache.errors import ConfigError
from inferencecache.settings.delivery import ServerTlsSettings
from inferencecache.transport.read_file import read_plain_file

_FILE_BYTES_MAX: Final = 4_194_304


def server_credentials(settings: ServerTlsSettings) -> grpc.ChannelCredentials | None:
    """Return what connections are made with; None means plaintext.

    Raises:
        ConfigError: A file cannot be read or is empty, or one is given that is of no use without
            another.
    """
    if bool(settings.cert_file) != bool(settings.key_file):
        absent = "server-client-key-file" if settings.cert_file else "server-client-cert-file"
        raise ConfigError(field=absent, value="", allowed="a file: certificate and key are a pair")
    if not settings.ca_file:
        if settings.cert_file:
            raise ConfigError(
                field="server-client-cert-file",
                value=settings.cert_file,
                allowed="no value without server-ca-file",
            )
        return None
    return grpc.ssl_channel_credentials(
        _read("server-ca-file", settings.ca_file),
        _read("server-client-key-file", settings.key_file) if settings.key_file else None,
        _read("server-client-cert-file", settings.cert_file) if settings.cert_file else None,
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
