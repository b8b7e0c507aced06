"""Ranking of replicas that are warm in general."""

import pytest

from inferencecache.ranking import (
    RankedReplica,
    RankInputs,
    explain_tenant_hot,
    rank_tenant_hot,
)
from inferencecache.settings.ranking import RankingSettings
from inferencecache.types import StatsRecord, StatsReport

S = 1_000_000_000
NOW = 1_700_000_000 * S


def record(
    replica_id: str, hit_rate: float, pressure: float = 0.0, age_ns: int = 30 * S
) -> StatsRecord:
    """Return statistics reported *age_ns* ago."""
    return StatsRecord(replica_id, StatsReport(hit_rate=hit_rate, pressure=pressure), NOW - age_ns)


def inputs(
    *records: StatsRecord, ttft_ms: float = 0, settings: RankingSettings | None = None
) -> RankInputs:
    """Return inputs with the given statistics."""
    return RankInputs(
        now_ns=NOW,
        ttl_ns=1,
        serving_count=3,
        stats={entry.replica_id: entry for entry in records},
        settings=settings or RankingSettings(),
        ttft_ms=ttft_ms,
    )


@pytest.mark.parametrize(
    ("hit_rate", "pressure", "expected"),
    [(0.8, 0.1, 0.647999942), (0.1, -3.0, 0.0899999961), (0.9, 1.0, 0.0)],
)
def test_published_scores(hit_rate: float, pressure: float, expected: float) -> None:
    """Half a minute old statistics give the published scores; 0 is returned too."""
    (ranked,) = rank_tenant_hot(["r"], inputs(record("r", hit_rate, pressure)))

    assert ranked.score == pytest.approx(expected, rel=5e-7)
    assert ranked.estimated_cache_hit_prob == pytest.approx(hit_rate, rel=1e-7)
    assert ranked[2:] == (0, ranked.estimated_cache_hit_prob, 0, 0)


def test_hit_rates_are_not_clamped() -> None:
    """A hit rate of 7 at pressure 0.5, stamped an hour ahead, scores 3.5."""
    (ranked,) = rank_tenant_hot(["r"], inputs(record("r", 7.0, 0.5, age_ns=-3600 * S)))

    assert ranked == RankedReplica("r", 3.5, 0, 7.0, 0, 0)


def test_the_largest_hit_rate_stays_finite() -> None:
    """Even a bonus on the largest float32 gives a finite score."""
    values = inputs(record("r", 1e300, age_ns=0), ttft_ms=100)

    (ranked,) = rank_tenant_hot(["r"], values)

    assert ranked.score == pytest.approx(3.4028234663852886e38)


@pytest.mark.parametrize(
    ("hit_rate", "age_ns"), [(0.0999, 0), (0.9, 300 * S), (float("nan"), 0), (-1.0, 0)]
)
def test_cold_or_silent_replicas_are_left_out(hit_rate: float, age_ns: int) -> None:
    """Below the smallest hit rate or at the age limit a replica is not warm."""
    assert rank_tenant_hot(["r"], inputs(record("r", hit_rate, age_ns=age_ns))) == []


def test_the_age_limit_is_exclusive() -> None:
    """One nanosecond before the limit a replica is still warm."""
    assert len(rank_tenant_hot(["r"], inputs(record("r", 0.9, age_ns=300 * S - 1)))) == 1


def test_only_serving_replicas_with_statistics_count() -> None:
    """A replica without entries in the scope, or without statistics, is left out."""
    values = inputs(record("a", 0.5), record("elsewhere", 0.9))

    assert [r.replica_id for r in rank_tenant_hot(["a", "silent"], values)] == ["a"]


def test_age_limit_zero_turns_it_off() -> None:
    """An age limit of 0 leaves nothing warm, not even statistics from the future."""
    settings = RankingSettings(tenant_hot_age_max_ns=0)

    assert rank_tenant_hot(["r"], inputs(record("r", 0.9, age_ns=-S), settings=settings)) == []


def test_order_is_by_score_then_id() -> None:
    """Warmer replicas come first, equal ones by id."""
    values = inputs(record("c", 0.5), record("b", 0.5), record("a", 0.4))

    assert [r.replica_id for r in rank_tenant_hot(["c", "a", "b"], values)] == ["b", "c", "a"]


def test_tight_targets_and_explanation() -> None:
    """The explanation shows the factors whose product is the score."""
    values = inputs(record("r", 0.5, 0.5), ttft_ms=199)

    factors = explain_tenant_hot(["r"], values)["r"]
    (ranked,) = rank_tenant_hot(["r"], values)

    assert factors.hit_rate == 0.5
    assert factors.recency == pytest.approx(0.9)
    assert factors.pressure_factor == 0.5
    assert factors.slo_bias == pytest.approx(1.9)
    assert factors.score == ranked.score == pytest.approx(0.5 * 0.9 * 0.5 * 1.9)
