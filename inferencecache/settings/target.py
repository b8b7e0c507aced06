"""Addresses to connect to: ``cache.example:9090``, ``[::1]:9090``, or a name that gRPC resolves."""

import re
from typing import Final

from inferencecache.errors import ConfigError

TARGET_FORM: Final = "HOST:PORT with a port from 1 to 65535, such as 127.0.0.1:9090"

_HOST_AND_PORT: Final = re.compile(r"(?:\[[\w:.%]+\]|[\w.-]+):(\d{1,5})", re.ASCII)
_RESOLVED_BY_GRPC: Final = ("dns:", "ipv4:", "ipv6:", "unix:")
_PORT_MAX: Final = 65_535


def check_target(field: str, text: str) -> None:
    """Refuse what cannot be the address of a server; gRPC itself would guess a port, or wrap it.

    Args:
        field: The setting, for the error.
        text: ``HOST:PORT``, or a target with a scheme of gRPC's own such as ``dns:///cache:9090``.

    Raises:
        ConfigError: *text* has another form.
    """
    if text.startswith(_RESOLVED_BY_GRPC):
        return
    match = _HOST_AND_PORT.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= _PORT_MAX:
        raise ConfigError(field=field, value=text, allowed=TARGET_FORM)
