"""Count failed attempts per peer, in a table that cannot be made to grow."""

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address
from typing import Final

from inferencecache.clock import Clock

_SITE_BITS: Final = 64
"""Whoever has one IPv6 address usually has a whole network of this prefix."""


class FailedAttempts:
    """Remembers which peers fail too often.

    Args:
        failures_max: Failures within a window from which on a peer is throttled, >= 1.
        window_ns: Length of a window in nanoseconds; a peer's starts with its first failure.
        peers_max: Peers remembered; beyond it the one whose window is oldest is forgotten.
        clock: Measures the window.
    """

    __slots__ = ("_clock", "_failures_max", "_peers", "_peers_max", "_window_ns")

    def __init__(self, *, failures_max: int, window_ns: int, peers_max: int, clock: Clock) -> None:
        self._failures_max = failures_max
        self._window_ns = window_ns
        self._peers_max = peers_max
        self._clock = clock
        self._peers: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._peers)

    def add(self, peer: str) -> None:
        """Count one failed attempt of *peer*."""
        now_ns = self._clock.monotonic_ns()
        started_ns, failures = self._peers.get(peer, (now_ns, 0))
        if now_ns - started_ns >= self._window_ns:
            del self._peers[peer]
            started_ns, failures = now_ns, 0
        self._peers[peer] = (started_ns, failures + 1)
        if len(self._peers) > self._peers_max:
            self._peers.popitem(last=False)

    def take_back(self, peer: str) -> None:
        """Forget one attempt of *peer* that was counted before its outcome was known."""
        started_ns, failures = self._peers.get(peer, (0, 0))
        if failures > 1:
            self._peers[peer] = (started_ns, failures - 1)
        else:
            self._peers.pop(peer, None)

    def wait_ns(self, peer: str) -> int:
        """Return how long *peer* has to wait before it is listened to again; 0 for not at all."""
        started_ns, failures = self._peers.get(peer, (0, 0))
        if failures < self._failures_max:
            return 0
        return max(started_ns + self._window_ns - self._clock.monotonic_ns(), 0)


def peer_of(address: str) -> str:
    """Return what a peer's failures are counted under: its IPv4 address or IPv6 network.

    >>> peer_of("::ffff:192.0.2.1"), peer_of("2001:db8::1:2")
    ('192.0.2.1', '2001:db8::')
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    host_bits = parsed.max_prefixlen - _SITE_BITS
    return str(IPv6Address(int(parsed) >> host_bits << host_bits))
