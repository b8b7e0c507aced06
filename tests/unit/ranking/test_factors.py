"""Each factor against its published numbers."""

import pytest

from inferencecache.ranking import (
    distinguishing_power,
    freshness,
    pressure_factor,
    public_tier,
    round_float32,
    slo_bias,
    slo_coefficient,
)
from inferencecache.types import COLDEST_TIER

S = 1_000_000_000
MIN = 60 * S


@pytest.mark.parametrize(
    ("age_ns", "ttl_ns", "expected"),
    [
        (0, 30 * MIN, 1.0),
        (S, 30 * MIN, 0.999444425),
        (MIN, 30 * MIN, 0.966666639),
        (2 * MIN, 30 * MIN, 0.933333337),
        (4 * MIN, 30 * MIN, 0.866666675),
        (29 * MIN + 59 * S, 30 * MIN, 0.000555555569),
        (30 * MIN, 30 * MIN, 0.0),
        (31 * MIN, 30 * MIN, 0.0),
        (-60 * MIN, 30 * MIN, 1.0),
        (20 * MIN, 60 * MIN, 0.666666687),
        (8 * MIN, 10 * MIN, 0.200000003),
    ],
)
def test_freshness_decays_linearly(age_ns: int, ttl_ns: int, expected: float) -> None:
    """Freshness falls from 1 at age 0 to 0 at the TTL, as a float32 to the last digit shown."""
    rounded = round_float32([freshness(age_ns, ttl_ns)])

    assert rounded == [pytest.approx(expected, rel=1e-8, abs=0)]


def test_freshness_is_positive_until_the_last_nanosecond() -> None:
    """One nanosecond before even a very long TTL an entry is still fresh."""
    ttl_ns = 2**62

    assert freshness(ttl_ns - 1, ttl_ns) > 0
    assert freshness(ttl_ns, ttl_ns) == 0


@pytest.mark.parametrize(
    ("pressure", "weight", "expected"),
    [
        (0.0, 1.0, 1.0),
        (0.9, 1.0, 0.1),
        (1.0, 1.0, 0.0),
        (1.5, 1.0, 0.0),
        (-3.0, 1.0, 1.0),
        (0.9, 0.0, 1.0),
        (0.25, 2.0, 0.5),
        (float("nan"), 1.0, 1.0),
        (float("inf"), 1.0, 0.0),
    ],
)
def test_pressure_factor_is_what_load_leaves_over(
    pressure: float, weight: float, expected: float
) -> None:
    """The factor falls with pressure, within [0, 1] whatever was reported."""
    assert pressure_factor(pressure, weight) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ttft_ms", "expected"), [(0, 0.0), (1, 1.0), (199, 1.0), (200, 0.0), (500, 0.0), (-1, 0.0)]
)
def test_only_targets_below_the_threshold_are_tight(ttft_ms: int, expected: float) -> None:
    """A target of 199 ms is tight, 200 ms is loose, 0 is none."""
    assert slo_coefficient(ttft_ms, 200, 1.0) == expected


def test_threshold_zero_means_never_tight() -> None:
    """A threshold of 0 ms turns the bias off."""
    assert slo_coefficient(1, 0, 1.0) == 0


def test_slo_bias_rewards_freshness() -> None:
    """A tight request doubles the freshest entries and leaves a stale one as it is."""
    assert slo_bias(1.0, 1.0) == 2.0
    assert slo_bias(0.0, 1.0) == 1.0
    assert slo_bias(1.0, 0.0) == 1.0


@pytest.mark.parametrize(
    ("matching", "total", "expected"),
    [
        (1, 1, 1.0),
        (0, 1, 1.0),
        (0, 0, 1.0),
        (3, 3, 0.0),
        (10, 10, 0.0),
        (1, 3, 2 / 3),
        (2, 3, 1 / 3),
        (5, 3, 0.0),
        (-1, 3, 1.0),
    ],
)
def test_distinguishing_power_fades_as_more_replicas_match(
    matching: int, total: int, expected: float
) -> None:
    """What every replica holds tells nothing; a lone replica always counts fully."""
    assert distinguishing_power(matching, total) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("tier", "expected"),
    [(0, 0), (1, 1), (2, 2), (3, 3), (4, 0), (77, 0), (-3, 0), (COLDEST_TIER, 0)],
)
def test_only_named_tiers_reach_the_wire(tier: int, expected: int) -> None:
    """Tiers outside T1 to T3 are reported as unspecified."""
    assert public_tier(tier) == expected
