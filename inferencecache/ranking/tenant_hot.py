"""Rank replicas that are warm for a tenant in general, when none holds the prompt.

Worked example, statistics 30 seconds old, five minutes allowed: hit rate 0.8 at pressure 0.1 gives
0.8 * 0.9 * 0.9 = 0.648; hit rate 0.9 at pressure 1 gives 0 and is returned all the same.

Source: docs/adr/0005-ranking.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from inferencecache.ranking.factors import (
    freshness,
    pressure_factor,
    slo_bias,
    slo_coefficient,
)
from inferencecache.ranking.matches import RankInputs
from inferencecache.ranking.score import FLOAT32_MAX, RankedReplica, best_first, round_float32
from inferencecache.types import StatsRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmFactors:
    """Why one warm replica got its score: the product of the first four, as a float32.

    Attributes:
        hit_rate: As reported, rounded to a float32, not clamped.
        recency: Of the statistics, in (0, 1].
        pressure_factor: What its load leaves over, in [0, 1].
        slo_bias: Bonus under a tight target, >= 1.
        score: The result, at most the largest float32.
    """

    hit_rate: float
    recency: float
    pressure_factor: float
    slo_bias: float
    score: float


class _Warm(NamedTuple):
    """The warm replicas and one list per factor, aligned."""

    replica_ids: list[str]
    hit_rates: list[float]
    recency: list[float]
    pressure: list[float]
    bias: list[float]
    scores: list[float]


def rank_tenant_hot(serving_replicas: Iterable[str], inputs: RankInputs) -> list[RankedReplica]:
    """Return the warm replicas, best first; ties go by replica id.

    Args:
        serving_replicas: Replicas with at least one entry in the scope, each once.
        inputs: Time, statistics and knobs; *ttl_ns* and *serving_count* do not matter here.

    Returns:
        The replicas with recent statistics and a high enough hit rate, also those with score 0.

    Complexity: O(n log n) in serving replicas.
    """
    warm = _warm(serving_replicas, inputs)
    return best_first(
        [
            RankedReplica(replica_id, score, 0, hit_rate, 0, 0)
            for replica_id, score, hit_rate in zip(
                warm.replica_ids, warm.scores, warm.hit_rates, strict=True
            )
        ]
    )


def explain_tenant_hot(
    serving_replicas: Iterable[str], inputs: RankInputs
) -> dict[str, WarmFactors]:
    """Return the factors behind each score of :func:`rank_tenant_hot`, by replica id.

    Args:
        serving_replicas: As for :func:`rank_tenant_hot`.
        inputs: As for :func:`rank_tenant_hot`.

    Complexity: O(serving replicas).
    """
    warm = _warm(serving_replicas, inputs)
    return {
        replica_id: WarmFactors(
            hit_rate=warm.hit_rates[place],
            recency=warm.recency[place],
            pressure_factor=warm.pressure[place],
            slo_bias=warm.bias[place],
            score=warm.scores[place],
        )
        for place, replica_id in enumerate(warm.replica_ids)
    }


def _warm(serving_replicas: Iterable[str], inputs: RankInputs) -> _Warm:
    """Return every factor and the rounded score of every warm replica."""
    settings = inputs.settings
    records = _warm_records(serving_replicas, inputs)
    hit_rates = _hit_rates(records)
    recency = [
        freshness(inputs.now_ns - record.reported_ns, settings.tenant_hot_age_max_ns)
        for record in records
    ]
    pressure = [
        pressure_factor(record.stats.pressure, settings.pressure_weight) for record in records
    ]
    coefficient = slo_coefficient(
        inputs.ttft_ms, settings.slo_tight_ttft_ms, settings.slo_tight_bias
    )
    bias = [slo_bias(recent, coefficient) for recent in recency]
    scores = round_float32(
        [
            min(rate * recent * load * bonus, FLOAT32_MAX)
            for rate, recent, load, bonus in zip(hit_rates, recency, pressure, bias, strict=True)
        ]
    )
    replica_ids = [record.replica_id for record in records]
    return _Warm(replica_ids, hit_rates, recency, pressure, bias, scores)


def _warm_records(serving_replicas: Iterable[str], inputs: RankInputs) -> list[StatsRecord]:
    """Return the statistics of the replicas that count as warm."""
    settings = inputs.settings
    if settings.tenant_hot_age_max_ns <= 0:
        return []
    (hit_rate_min,) = round_float32((settings.tenant_hot_hit_rate_min,))
    too_old_ns = inputs.now_ns - settings.tenant_hot_age_max_ns
    recent = [
        record
        for record in map(inputs.stats.get, serving_replicas)
        if record is not None and record.reported_ns > too_old_ns
    ]
    return [
        record
        for record, hit_rate in zip(recent, _hit_rates(recent), strict=True)
        if hit_rate >= hit_rate_min
    ]


def _hit_rates(records: list[StatsRecord]) -> list[float]:
    """Return the hit rates as the wire carries them."""
    return round_float32([min(record.stats.hit_rate, FLOAT32_MAX) for record in records])
