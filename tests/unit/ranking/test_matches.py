"""Ranking of prefix matches, with the numbers of the contract."""

from collections.abc import Mapping

import pytest

from inferencecache.ranking import (
    RankedReplica,
    RankInputs,
    explain_matches,
    rank_matches,
)
from inferencecache.settings.ranking import RankingSettings
from inferencecache.types import COLDEST_TIER, Candidate, StatsRecord, StatsReport

S = 1_000_000_000
MIN = 60 * S
NOW = 1_700_000_000 * S


def candidate(
    replica_id: str, tokens: int, *, age_ns: int = 0, tier: int = 1, blocks: int = 1
) -> Candidate:
    """Return a candidate last seen *age_ns* ago."""
    return (replica_id, tokens, NOW - age_ns, tier, blocks)


def inputs(
    *,
    serving: int = 3,
    pressures: Mapping[str, float] | None = None,
    stats_age_ns: int = 0,
    ttl_ns: int = 30 * MIN,
    ttft_ms: float = 0,
    settings: RankingSettings | None = None,
) -> RankInputs:
    """Return inputs in which *serving* replicas serve the scope."""
    stats = {
        replica_id: StatsRecord(replica_id, StatsReport(pressure=pressure), NOW - stats_age_ns)
        for replica_id, pressure in (pressures or {}).items()
    }
    return RankInputs(
        now_ns=NOW,
        ttl_ns=ttl_ns,
        serving_count=serving,
        stats=stats,
        settings=settings or RankingSettings(),
        ttft_ms=ttft_ms,
    )


def order(ranked: list[RankedReplica]) -> list[str]:
    """Return the replica ids in rank order."""
    return [replica.replica_id for replica in ranked]


ABC = [
    candidate("C", 64, age_ns=4 * MIN, blocks=1),
    candidate("A", 192, age_ns=MIN, blocks=3),
    candidate("B", 128, age_ns=2 * MIN, blocks=2),
]


def test_worked_example() -> None:
    """Three depths and ages give the three published scores."""
    ranked = rank_matches(ABC, inputs())

    assert order(ranked) == ["A", "B", "C"]
    assert [r.score for r in ranked] == [
        pytest.approx(123.73333, rel=1e-7),
        pytest.approx(39.8222237, rel=1e-7),
        0.0,
    ]
    assert [r.matched_tokens for r in ranked] == [192, 128, 64]
    assert [r.matched_blocks for r in ranked] == [3, 2, 1]
    assert [r.estimated_cache_hit_prob for r in ranked] == [
        pytest.approx(29 / 30),
        pytest.approx(28 / 30),
        pytest.approx(26 / 30),
    ]


def test_worked_example_under_a_tight_target() -> None:
    """A target of 199 ms favours the fresh entries by the published amounts."""
    ranked = rank_matches(ABC, inputs(ttft_ms=199))

    assert [r.score for r in ranked] == [
        pytest.approx(243.342224, rel=1e-7),
        pytest.approx(76.9896393, rel=1e-7),
        0.0,
    ]


def test_four_four_one_blocks() -> None:
    """Two replicas as deep as each other share one power; the shallow one has none."""
    ranked = rank_matches(
        [candidate("p0", 64, blocks=4), candidate("p1", 64, blocks=4), candidate("p2", 16)],
        inputs(),
    )

    assert [(r.replica_id, r.score) for r in ranked] == [
        ("p0", pytest.approx(21.3333, abs=1e-4)),
        ("p1", pytest.approx(21.3333, abs=1e-4)),
        ("p2", 0.0),
    ]


@pytest.mark.parametrize(
    ("holders", "tokens", "expected"), [(3, 16, 0.0), (1, 64, 42.67), (2, 48, 16.0)]
)
def test_exact_scores_fall_with_holders(holders: int, tokens: int, expected: float) -> None:
    """Of three serving replicas, three, one or two holders give 0, 2/3 or 1/3 of the tokens."""
    ranked = rank_matches([candidate(f"r{n}", tokens) for n in range(holders)], inputs())

    assert [r.score for r in ranked] == [pytest.approx(expected, abs=0.1)] * holders
    assert [r.matched_tokens for r in ranked] == [tokens] * holders


@pytest.mark.parametrize(("tokens", "blocks"), [(64, 1), (128, 2)])
def test_a_lone_replica_keeps_its_baseline(tokens: int, blocks: int) -> None:
    """With one serving replica the score is the matched tokens."""
    ranked = rank_matches([candidate("solo", tokens, blocks=blocks)], inputs(serving=1))

    assert ranked == [RankedReplica("solo", float(tokens), tokens, 1.0, 1, blocks)]


def test_power_depends_on_depth() -> None:
    """Holders of 4, 2 and 1 blocks of 64 tokens score 170.67, 42.67 and 0."""
    ranked = rank_matches(
        [
            candidate("r2", 64, blocks=1),
            candidate("r1", 128, blocks=2),
            candidate("r0", 256, blocks=4),
        ],
        inputs(),
    )

    assert [(r.replica_id, r.score) for r in ranked] == [
        ("r0", pytest.approx(170.67, abs=0.01)),
        ("r1", pytest.approx(42.67, abs=0.01)),
        ("r2", 0.0),
    ]


def test_depth_is_compared_by_tokens_not_by_blocks() -> None:
    """A block of no tokens makes a match no deeper."""
    ranked = rank_matches([candidate("a", 64, blocks=2), candidate("b", 64, blocks=1)], inputs())

    assert [r.score for r in ranked] == [pytest.approx(64 / 3)] * 2


def test_exact_holders_share_one_power_whatever_they_stored() -> None:
    """Stored counts of 80 and 40 for the same hash give a third of each."""
    ranked = rank_matches([candidate("a", 80), candidate("b", 40)], inputs())

    assert [r.score for r in ranked] == [
        pytest.approx(26.667, abs=1e-3),
        pytest.approx(13.333, abs=1e-3),
    ]


def test_more_matches_than_serving_replicas_give_nothing() -> None:
    """A denominator that lags behind cannot make a score negative."""
    chain = [candidate(f"r{n}", 16 * n, blocks=n) for n in range(1, 6)]

    ranked = rank_matches(chain, inputs(serving=2))

    assert [r.score for r in ranked] == [40.0, 0.0, 0.0, 0.0, 0.0]


def test_no_candidates_give_no_ranking() -> None:
    """An empty match is an empty answer and has nothing to explain."""
    assert rank_matches([], inputs()) == []
    assert explain_matches([], inputs()) == {}


@pytest.mark.parametrize(
    ("candidates", "pressures", "weight", "first"),
    [
        ([("busy", 100), ("idle", 100)], {"busy": 0.9, "idle": 0.0}, 1.0, "idle"),
        ([("big-hot", 100), ("small-cool", 50)], {"big-hot": 0.9}, 1.0, "small-cool"),
        ([("big-hot", 100), ("small-cool", 50)], {"big-hot": 0.9}, 0.0, "big-hot"),
        ([("dead", 100), ("alive", 1)], {"dead": 1.5, "alive": 0.0}, 1.0, "alive"),
    ],
)
def test_pressure_moves_load_away(
    candidates: list[tuple[str, int]], pressures: dict[str, float], weight: float, first: str
) -> None:
    """A loaded replica loses to an idle one unless the weight is 0."""
    settings = RankingSettings(pressure_weight=weight)
    rows = [candidate(replica_id, tokens) for replica_id, tokens in candidates]

    ranked = rank_matches(rows, inputs(pressures=pressures, settings=settings))

    assert ranked[0].replica_id == first


@pytest.mark.parametrize(
    ("stats_age_ns", "expected"), [(30 * MIN - 1, 10.0), (30 * MIN, 100.0), (-MIN, 10.0)]
)
def test_stale_statistics_do_not_count(stats_age_ns: int, expected: float) -> None:
    """Pressure counts while its report is younger than the tenant's TTL."""
    values = inputs(serving=1, pressures={"r": 0.9}, stats_age_ns=stats_age_ns)

    (ranked,) = rank_matches([candidate("r", 100)], values)

    assert ranked.score == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ttft_ms", "bias", "first"),
    [(0, 5, "big-old"), (500, 5, "big-old"), (50, 5, "small-fresh"), (50, 0, "big-old")],
)
def test_a_tight_target_prefers_fresh_entries(ttft_ms: int, bias: float, first: str) -> None:
    """Under 100 ms a fresh 50 tokens beat 100 tokens of 20 minutes ago; bias 0 turns it off."""
    settings = RankingSettings(slo_tight_ttft_ms=100, slo_tight_bias=bias)
    rows = [candidate("big-old", 100, age_ns=20 * MIN), candidate("small-fresh", 50)]

    ranked = rank_matches(rows, inputs(ttl_ns=60 * MIN, ttft_ms=ttft_ms, settings=settings))

    assert ranked[0].replica_id == first


def test_chains_share_the_pressure_factor() -> None:
    """Two blocks of 16 on a cool replica beat three on a hot one: 10.67 against 3.2."""
    rows = [candidate("big-hot", 48, blocks=3), candidate("small-cool", 32, blocks=2)]

    ranked = rank_matches(rows, inputs(pressures={"big-hot": 0.9, "small-cool": 0.0}))

    assert [(r.replica_id, r.score) for r in ranked] == [
        ("small-cool", pytest.approx(10.67, abs=0.01)),
        ("big-hot", pytest.approx(3.2)),
    ]


def test_a_clock_behind_the_reports_counts_as_fresh() -> None:
    """An entry stamped after now has freshness 1, an expired one 0."""
    rows = [candidate("ahead", 10, age_ns=-MIN), candidate("expired", 10, age_ns=31 * MIN)]

    ranked = rank_matches(rows, inputs(serving=4))

    assert [(r.replica_id, r.estimated_cache_hit_prob) for r in ranked] == [
        ("ahead", 1.0),
        ("expired", 0.0),
    ]


def test_ties_go_by_replica_id() -> None:
    """Equal scores are ordered by id, by byte value."""
    rows = [candidate(name, 64) for name in ("b", "é", "a", "Z", "a0")]

    assert order(rank_matches(rows, inputs(serving=9))) == ["Z", "a", "a0", "b", "é"]


def test_scores_are_rounded_before_they_are_compared() -> None:
    """A difference that float32 cannot show is a tie."""
    rows = [candidate("b", 16_000_000), candidate("a", 16_000_000, age_ns=1)]

    ranked = rank_matches(rows, inputs(serving=9))

    assert order(ranked) == ["a", "b"]
    assert ranked[0].score == ranked[1].score


def test_tiers_are_reported_as_on_the_wire() -> None:
    """Unnamed tiers are reported as 0."""
    rows = [candidate("a", 3, tier=3), candidate("b", 2, tier=COLDEST_TIER)]

    assert [r.tier for r in rank_matches(rows, inputs())] == [3, 0]


def test_explanation_shows_the_factors_of_the_score() -> None:
    """Every factor of the worked example is shown, and their product is the score."""
    values = inputs(ttft_ms=199, pressures={"B": 0.5})

    factors = explain_matches(ABC, values)["B"]

    assert factors.matched_tokens == 128
    assert factors.freshness == pytest.approx(28 / 30)
    assert factors.pressure_factor == 0.5
    assert factors.slo_bias == pytest.approx(1 + 28 / 30)
    assert factors.distinguishing_power == pytest.approx(1 / 3)
    assert factors.score == pytest.approx(76.9896393 / 2, rel=1e-7)
