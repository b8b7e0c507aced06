"""Listening sockets, and the one error that says why there is none."""

import socket

from inferencecache.errors import InferenceCacheError
from inferencecache.settings.address import BindAddress

_BACKLOG = 512


class ListenError(InferenceCacheError):
    """A listener cannot have its address.

    Args:
        listener: Which one, for example ``grpc``.
        address: The address asked for.
        reason: What the system said.
    """

    def __init__(self, *, listener: str, address: str, reason: str) -> None:
        super().__init__(f"{listener}: cannot listen on {address}: {reason}")
        self.listener = listener
        self.address = address
        self.reason = reason


def wildcard_host() -> str:
    """Return the host that stands for every interface: both IP versions where possible."""
    return "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104 - asked for by ``:port``


def open_listening_socket(listener: str, address: BindAddress) -> socket.socket:
    """Return a non-blocking TCP socket that listens on *address*.

    Args:
        listener: Name for the error.
        address: Where; an empty host means every interface, port 0 any free port.

    Raises:
        ListenError: The address is taken, forbidden or unknown.
    """
    host = address.host or wildcard_host()
    try:
        family = socket.getaddrinfo(host, address.port, type=socket.SOCK_STREAM)[0][0]
        opened = socket.create_server(
            (host, address.port),
            family=family,
            backlog=_BACKLOG,
            dualstack_ipv6=not address.host and family == socket.AF_INET6,
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise ListenError(listener=listener, address=str(address), reason=reason) from error
    opened.settimeout(0)
    return opened
