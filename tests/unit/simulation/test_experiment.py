"""Accounting of a whole replay, worked by hand."""

import json

import pytest

from inferencecache.settings.replay import ReplaySettings
from inferencecache.simulation import (
    Answer,
    Experiment,
    InfiniteFleet,
    ReplaySummary,
    TraceRequest,
    percentile_ns,
    prompt_of,
    summarize,
)

SHARED = (1, 2)
PROMPTS = [
    prompt_of(TraceRequest(timestamp_ms=0, input_length=tokens, output_length=0, hash_ids=hash_ids))
    for tokens, hash_ids in [
        (1_100, (*SHARED, 3)),
        (1_100, (*SHARED, 4)),
        (600, (9, 10)),
        (1_536, (*SHARED, 5)),
    ]
]
ANSWERS = [
    Answer(reason_code="NO_HINT", hinted_tokens={}, latency_ns=4_000),
    Answer(reason_code="PREFIX_MATCH", hinted_tokens={0: 1_024}, latency_ns=1_000),
    Answer(reason_code="NO_HINT", hinted_tokens={}, latency_ns=3_000),
    Answer(reason_code="PREFIX_MATCH", hinted_tokens={0: 1_024}, latency_ns=2_000),
]


def play(seed: int = 3) -> ReplaySummary:
    """Return the summary of the four prompts on two replicas without the overload rule."""
    settings = ReplaySettings(replicas=2, cache_blocks=10, overload_factor=0, seed=seed)
    experiment = Experiment(settings, len(PROMPTS))
    for prompt, answer in zip(PROMPTS, ANSWERS, strict=True):
        experiment.play(prompt, answer)
    return experiment.summary("t", ["r0", "r1"], 2_500_000_000)


def test_turn_order_of_the_seed() -> None:
    """The seed of these tests begins with replica 0, which the numbers below rest on."""
    assert play().per_replica[0].requests == 3


def test_infinite_cache_divides_full_blocks_by_all_tokens() -> None:
    """Two later prompts reuse 2 blocks each: 2,048 of 1,100 + 1,100 + 600 + 1,536 tokens."""
    infinite = play().infinite

    assert (infinite.hit_tokens, infinite.prompt_tokens) == (2_048, 4_336)
    assert infinite.hit_ratio == pytest.approx(2_048 / 4_336)


def test_partial_block_is_never_a_hit() -> None:
    """The same 600-token prompt twice hits its full block only."""
    fleet = InfiniteFleet()
    for _ in range(2):
        fleet.serve(PROMPTS[2])

    assert summarize(fleet.tallies).hit_tokens == 512


def test_round_robin_counts_with_the_same_caches() -> None:
    """Prompts alternate: 0 and 2 on one replica, 1 and 3 on the other, which then hits 2 blocks."""
    round_robin = play().round_robin

    assert round_robin.hit_tokens == 1_024
    assert round_robin.requests_max_over_mean == 1
    assert round_robin.prompt_tokens_max_over_mean == pytest.approx(2_636 / 2_168)


def test_cache_aware_counts_hits_of_the_replica() -> None:
    """Three prompts follow the prefix to replica 0; the unrelated one goes to the next in turn."""
    summary = play()
    aware, rows = summary.cache_aware, summary.per_replica

    assert aware.hit_tokens == 2_048
    assert [(row.requests, row.prompt_tokens, row.hit_tokens) for row in rows] == [
        (3, 3_736, 2_048),
        (1, 600, 0),
    ]
    assert aware.requests_max_over_mean == pytest.approx(1.5)
    assert aware.computed_tokens_max_over_mean == pytest.approx(1_688 / 1_144)


def test_a_wrong_hint_is_no_hit() -> None:
    """Hits are what the replica held, whatever the answer promised."""
    experiment = Experiment(ReplaySettings(replicas=2), 1)
    promise = Answer(reason_code="PREFIX_MATCH", hinted_tokens={1: 1_024}, latency_ns=1)

    served = experiment.play(PROMPTS[0], promise)

    assert served.replica == 1
    assert experiment.standing().cache_aware.hit_tokens == 0


def test_counts_reasons_routes_reports_and_latency() -> None:
    """The remaining rows of the table."""
    summary = play()

    assert summary.reason_codes == {"NO_HINT": 2, "PREFIX_MATCH": 2}
    assert summary.routes == {"hint": 2, "overload": 0, "weak_match": 0, "round_robin": 2}
    assert (summary.stored_blocks, summary.evicted_blocks) == (4, 0)
    assert (summary.lookup.p50_us, summary.lookup.p99_us, summary.lookup.max_us) == (2, 4, 4)
    assert summary.duration_s == 2.5


def test_curve_ends_with_the_result() -> None:
    """The last point of the curve is the ratio in the table."""
    summary = play()
    last = summary.curve[-1]

    assert (last.requests, last.cache_aware) == (4, summary.cache_aware.hit_ratio)
    assert last.infinite == summary.infinite.hit_ratio


def test_json_object_is_plain() -> None:
    """The summary survives JSON unchanged."""
    plain = play().as_json_object()

    assert json.loads(json.dumps(plain)) == plain


def test_nothing_played() -> None:
    """An empty trace gives zeros and no division by zero."""
    summary = Experiment(ReplaySettings(), 0).summary("t", [f"r{n}" for n in range(8)], 0)

    assert summary.cache_aware.hit_ratio == 0
    assert summary.lookup.p99_us == 0


@pytest.mark.parametrize(
    ("percent", "expected"), [(1, 10), (50, 20), (51, 30), (75, 30), (76, 40), (100, 40)]
)
def test_percentile_is_the_nearest_rank(percent: int, expected: int) -> None:
    """A percentile is one of the values."""
    assert percentile_ns([40, 10, 30, 20], percent) == expected
