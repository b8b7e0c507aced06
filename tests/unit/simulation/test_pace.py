"""Pacing of arrivals."""

import pytest

from inferencecache.simulation import due_in_ns


@pytest.mark.parametrize(
    ("arrival_ms", "speed", "elapsed_ns", "expected_ns"),
    [
        (3_000, 0, 0, 0),
        (3_000, 1, 1_000_000_000, 2_000_000_000),
        (3_000, 10, 0, 300_000_000),
        (3_000, 0.5, 0, 6_000_000_000),
        (3_000, 1, 4_000_000_000, 0),
    ],
)
def test_waits_for_the_scaled_arrival(
    arrival_ms: int, speed: float, elapsed_ns: int, expected_ns: int
) -> None:
    """A prompt is due at its trace time divided by the speed; one that is late goes at once."""
    assert due_in_ns(arrival_ms, speed, elapsed_ns) == expected_ns
