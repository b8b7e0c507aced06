"""Durations as people write them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.settings.duration import format_duration, parse_duration

READINGS = [
    ("0", 0),
    ("1ns", 1),
    ("1us", 1_000),
    ("1µs", 1_000),
    ("250ms", 250_000_000),
    ("1.5s", 1_500_000_000),
    (".5s", 500_000_000),
    ("30m", 1_800_000_000_000),
    ("1h30m", 5_400_000_000_000),
    ("1h0m0s", 3_600_000_000_000),
    ("+2s", 2_000_000_000),
    ("-2s", -2_000_000_000),
    ("1s1h", 3_601_000_000_000),
]
REFUSED = [
    "",
    "5",
    "1 s",
    "s",
    "1d",
    "1h30",
    "--1s",
    "1s-1s",
    "\u0661s",
    "1e3s",
    "inf",
    "9999999999h",
    "1.s.",
    "5 m",
]


@pytest.mark.parametrize(("text", "duration_ns"), READINGS)
def test_reads_numbers_with_units(text: str, duration_ns: int) -> None:
    """Numbers with units add up, in any order and with a sign."""
    assert parse_duration(text) == duration_ns


@pytest.mark.parametrize("text", REFUSED)
def test_refuses_everything_else(text: str) -> None:
    """A number without unit, an unknown unit, spaces and overflow are refused."""
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_reads_back_what_it_writes(duration_ns: int) -> None:
    """Every duration survives being written and read."""
    assert parse_duration(format_duration(duration_ns)) == duration_ns


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text gives a number or a ValueError, nothing else."""
    with suppress(ValueError):
        assert isinstance(parse_duration(text), int)
