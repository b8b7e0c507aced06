"""Failed attempts are counted per peer, in bounded room."""

import pytest

from inferencecache.clock import ManualClock
from inferencecache.transport.auth_peers import FailedAttempts, peer_of

SECOND_NS = 1_000_000_000


def table(clock: ManualClock, peers_max: int = 2) -> FailedAttempts:
    """Return a table that throttles after two failures in ten seconds."""
    return FailedAttempts(
        failures_max=2, window_ns=10 * SECOND_NS, peers_max=peers_max, clock=clock
    )


def test_a_window_starts_with_the_first_failure() -> None:
    """When it is over, the peer starts anew."""
    clock = ManualClock()
    failures = table(clock)
    failures.add("a")
    clock.advance_ns(9 * SECOND_NS)
    assert failures.wait_ns("a") == 0
    failures.add("a")
    assert failures.wait_ns("a") == SECOND_NS
    clock.advance_ns(SECOND_NS)
    assert failures.wait_ns("a") == 0
    failures.add("a")
    assert failures.wait_ns("a") == 0


def test_the_oldest_window_is_forgotten_when_room_runs_out() -> None:
    """Many peers cannot fill the memory; the newest are remembered."""
    failures = table(ManualClock())
    for peer in "abcdefgh":
        failures.add(peer)
        failures.add(peer)
    assert len(failures) == 2
    assert failures.wait_ns("a") == 0
    assert failures.wait_ns("h") > 0


def test_a_new_window_makes_a_peer_one_of_the_newest() -> None:
    """Not when a peer was first seen counts, but when its window began."""
    clock = ManualClock()
    failures = table(clock)
    failures.add("a")
    clock.advance_ns(SECOND_NS)
    failures.add("b")
    clock.advance_ns(9 * SECOND_NS)
    for peer in "aac":
        failures.add(peer)
    assert failures.wait_ns("a") == 10 * SECOND_NS


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("not an address", "not an address"),
        ("", ""),
    ],
)
def test_a_peer_is_an_address_or_its_network(address: str, peer: str) -> None:
    """IPv4 peers stay apart even when they arrive as IPv6; an IPv6 site is one peer."""
    assert peer_of(address) == peer
