"""Ports of a test's own: free until the test itself listens there.

The system gives ports of its ephemeral range to whoever asks for any, connections of other tests
included; one of those that was free a moment ago may be taken a moment later.
"""

import random
import socket
from pathlib import Path

_LOWEST = 16_384
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_EPHEMERAL_FROM = int(_EPHEMERAL.read_text().split()[0]) if _EPHEMERAL.exists() else 32_768
_draw = random.SystemRandom()
_given: set[int] = set()


def own_port() -> int:
    """Return a port of the loopback address that nobody listens at, and that nobody is given."""
    while True:
        port = _draw.randrange(_LOWEST, _EPHEMERAL_FROM)
        if port not in _given and _is_free(port):
            _given.add(port)
            return port


def own_target() -> str:
    """Return ``host:port`` of such a port."""
    return f"127.0.0.1:{own_port()}"


def _is_free(port: int) -> bool:
    with socket.socket() as opened:
        try:
            opened.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
