"""Laws every ranking obeys."""

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.ranking import (
    RankInputs,
    distinguishing_power,
    explain_matches,
    freshness,
    pressure_factor,
    rank_matches,
    rank_tenant_hot,
    round_float32,
    slo_bias,
    slo_coefficient,
)
from inferencecache.settings.ranking import RankingSettings
from inferencecache.types import INT32_MAX, Candidate, StatsRecord, StatsReport

NOW = 1_700_000_000_000_000_000

replica_ids = st.text(max_size=3)
ages = st.integers(-(2**40), 2**45)
ratios = st.floats(width=32) | st.floats(0, 1, width=32)


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    """Return candidates of distinct replicas at any depth and age."""
    ids = draw(st.lists(replica_ids, unique=True, max_size=12))
    depths = st.integers(0, 6) | st.integers(0, INT32_MAX)
    return [
        (replica_id, draw(depths), NOW - draw(ages), draw(st.integers(0, 5)), draw(depths))
        for replica_id in ids
    ]


@st.composite
def rank_inputs(draw: st.DrawFn) -> RankInputs:
    """Return inputs with any statistics and knobs."""
    ids = draw(st.lists(replica_ids, max_size=12))
    stats = {
        replica_id: StatsRecord(
            replica_id,
            StatsReport(hit_rate=draw(ratios), pressure=draw(ratios)),
            NOW - draw(ages),
        )
        for replica_id in ids
    }
    settings = RankingSettings(
        pressure_weight=draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])),
        slo_tight_bias=draw(st.sampled_from([0.0, 1.0, 5.0])),
    )
    return RankInputs(
        now_ns=NOW,
        ttl_ns=draw(st.integers(1, 2**45)),
        serving_count=draw(st.integers(0, 10)),
        stats=stats,
        settings=settings,
        ttft_ms=draw(st.sampled_from([0, 100, 300])),
    )


@given(rows=candidates(), values=rank_inputs())
def test_scores_are_finite_non_negative_and_in_order(
    rows: list[Candidate], values: RankInputs
) -> None:
    """Every candidate is returned once, with a finite score >= 0, best first, ties by id."""
    ranked = rank_matches(rows, values)

    assert all(math.isfinite(r.score) and r.score >= 0 for r in ranked)
    assert [r.replica_id for r in ranked] == [
        r.replica_id for r in sorted(ranked, key=lambda r: (-r.score, r.replica_id))
    ]
    assert sorted(r.replica_id for r in ranked) == sorted(row[0] for row in rows)


@given(rows=candidates(), values=rank_inputs(), seed=st.integers(0, 2**32))
def test_order_of_candidates_is_irrelevant(
    rows: list[Candidate], values: RankInputs, seed: int
) -> None:
    """Shuffled candidates give the same answer."""
    shuffled = list(rows)
    random.Random(seed).shuffle(shuffled)

    assert rank_matches(shuffled, values) == rank_matches(rows, values)


@given(rows=candidates(), values=rank_inputs())
def test_the_loop_agrees_with_the_factors(rows: list[Candidate], values: RankInputs) -> None:
    """Every shown factor equals its definition, and the answer is their rounded product."""
    settings = values.settings
    by_id = {r.replica_id: r for r in rank_matches(rows, values)}
    one_depth = len({row[4] for row in rows}) == 1
    coefficient = slo_coefficient(
        values.ttft_ms, settings.slo_tight_ttft_ms, settings.slo_tight_bias
    )

    for replica_id, factors in explain_matches(rows, values).items():
        row = next(row for row in rows if row[0] == replica_id)
        record = values.stats.get(replica_id)
        counts = record and freshness(values.now_ns - record.reported_ns, values.ttl_ns) > 0
        deeper = len(rows) if one_depth else sum(other[1] >= row[1] for other in rows)

        assert factors.freshness == freshness(values.now_ns - row[2], values.ttl_ns)
        assert factors.pressure_factor == (
            pressure_factor(record.stats.pressure, settings.pressure_weight)
            if record and counts
            else 1.0
        )
        assert factors.slo_bias == slo_bias(factors.freshness, coefficient)
        assert factors.distinguishing_power == distinguishing_power(deeper, values.serving_count)
        assert factors.score == by_id[replica_id].score
        product = factors.matched_tokens * factors.freshness * factors.pressure_factor
        product *= factors.slo_bias * factors.distinguishing_power
        assert math.isclose(factors.score, product, rel_tol=1e-6, abs_tol=1e-30)


@given(rows=candidates(), values=rank_inputs(), more=st.integers(1, 1_000))
def test_a_deeper_match_never_scores_less(
    rows: list[Candidate], values: RankInputs, more: int
) -> None:
    """Matching more tokens, all else equal, cannot lower a replica's score."""
    if not rows:
        return
    replica_id, tokens, seen_ns, tier, blocks = rows[0]
    deeper = [(replica_id, tokens + more, seen_ns, tier, blocks), *rows[1:]]
    before = {r.replica_id: r.score for r in rank_matches(rows, values)}
    after = {r.replica_id: r.score for r in rank_matches(deeper, values)}

    assert after[replica_id] >= before[replica_id]


@given(values=rank_inputs())
def test_warm_replicas_have_finite_scores_in_order(values: RankInputs) -> None:
    """Warm replicas are returned best first with finite scores >= 0."""
    ranked = rank_tenant_hot(values.stats, values)

    assert all(math.isfinite(r.score) and r.score >= 0 for r in ranked)
    assert ranked == sorted(ranked, key=lambda r: (-r.score, r.replica_id))


@given(st.lists(st.floats(width=32, allow_nan=False)))
def test_rounding_keeps_float32_values(values: list[float]) -> None:
    """A float32 value is its own rounding."""
    assert round_float32(values) == values
