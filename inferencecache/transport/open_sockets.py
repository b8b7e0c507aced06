"""End the connections of a port that a library has opened and keeps to itself.

The C core has no way to end connections without refusing calls at the same time, and a call that
it refuses while it shuts down ends as CANCELLED, which callers take for their own doing. A
connection whose socket is shut ends its calls as UNAVAILABLE, and callers connect again.

Rules of this file: a socket is looked at through a descriptor of its own, so it cannot turn into
another one meanwhile.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import Final

from inferencecache.settings.address import BindAddress

_DESCRIPTORS: Final = "/dev/fd"


def end_connections(address: BindAddress, *, with_listener: bool = False) -> int:
    """Shut every connection that was accepted on *address*; return how many there were.

    Args:
        address: Where this process listens, with the real port.
        with_listener: Whether to stop listening, too.

    Complexity: O(open files of the process).
    """
    ended = 0
    for number in _descriptors():
        with suppress(OSError), _second_handle(number) as found:
            if not _is_at(found, address):
                continue
            is_listener = bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
            if with_listener or not is_listener:
                found.shutdown(socket.SHUT_RDWR)
                ended += not is_listener
    return ended


def _descriptors() -> list[int]:
    """Return the open files of this process; none where the system does not show them."""
    try:
        return [int(name) for name in os.listdir(_DESCRIPTORS)]  # noqa: PTH208 - numbers wanted
    except OSError:
        return []


@contextmanager
def _second_handle(number: int) -> Iterator[socket.socket]:
    """Give a second handle of what is open as *number*.

    Raises:
        OSError: It is no socket, or not open any more.
    """
    copy = os.dup(number)
    try:
        handle = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
    with handle:
        yield handle


def _is_at(found: socket.socket, address: BindAddress) -> bool:
    if found.family not in {socket.AF_INET, socket.AF_INET6}:
        return False
    host, port = found.getsockname()[:2]
    return port == address.port and _is_host(host, address.host)


def _is_host(host: str, wanted: str) -> bool:
    """Tell whether a socket at *host* belongs to a listener at *wanted*, which may be a name."""
    try:
        listener = ip_address(wanted)
    except ValueError:
        return True
    here = ip_address(host.partition("%")[0])
    mapped = getattr(here, "ipv4_mapped", None)
    return listener.is_unspecified or listener in {here, mapped}
