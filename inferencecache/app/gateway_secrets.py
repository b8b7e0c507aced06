"""What a gateway shows to its clients, and what they have to show."""

from inferencecache.clock import Clock
from inferencecache.settings.gateway_listen import GatewayTlsSettings
from inferencecache.transport.gateway_keys import KeyFile, KeyFileError
from inferencecache.transport.start_error import StartError
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.tls_files import TlsFiles, TlsLoadError, TlsPaths


def listener_tls(settings: GatewayTlsSettings, clock: Clock, log: EventLog) -> TlsFiles | None:
    """Return certificate and key of the listener, None for plaintext.

    Raises:
        StartError: They cannot be used.
    """
    if not settings.cert_file:
        return None
    paths = TlsPaths(cert_file=settings.cert_file, key_file=settings.key_file)
    try:
        return TlsFiles(paths, clock, lambda reason: log.error("gateway_tls_reload", reason=reason))
    except TlsLoadError as error:
        raise StartError(event="gateway_tls_load", reason=error.reason) from error


def client_keys(path: str, clock: Clock, log: EventLog) -> KeyFile | None:
    """Return the keys of clients, None where none are needed.

    Raises:
        StartError: The file cannot be used.
    """
    if not path:
        return None
    try:
        return KeyFile(path, clock, lambda reason: log.error("gateway_keys_reload", reason=reason))
    except KeyFileError as error:
        raise StartError(event="gateway_keys_load", reason=error.reason) from error
