"""Rank the replicas that hold a leading part of a prompt; exact and chain lookups share it.

Rules of this file: every factor is computed once, as a column over all candidates, by
:func:`_columns`; the answer multiplies the columns and the explanation shows them, so the two
cannot drift apart. Columns also keep a call per candidate and factor out of the hot path. For the
usual handful of candidates columns cost more than they save: :func:`_rank_few` multiplies the
definitions themselves, in the same order, and a property test holds the two together.

Worked example, 30-minute TTL, 64 tokens a block, three replicas serve the scope, no statistics:

======= ====== ====== ========== ===== ======== ===========
replica tokens seen   freshness  >= me power    score
======= ====== ====== ========== ===== ======== ===========
A       192    1 min  0.96667    1     2/3      123.73333
B       128    2 min  0.93333    2     1/3      39.82222
C       64     4 min  0.86667    3     0        0
======= ====== ====== ========== ===== ======== ===========

C matches, yet what all three hold tells them apart no more: its score is 0 and a floor drops it.

Source: docs/adr/0005-ranking.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from inferencecache.ranking.factors import (
    distinguishing_power,
    freshness,
    pressure_factor,
    slo_bias,
    slo_coefficient,
)
from inferencecache.ranking.score import (
    RankedReplica,
    best_first,
    public_tier,
    public_tiers,
    round_float32,
)
from inferencecache.settings.ranking import RankingSettings
from inferencecache.types import Candidate, StatsRecord


class RankInputs(NamedTuple):
    """What a ranking needs beside the candidates.

    Attributes:
        now_ns: Unix time, nanoseconds.
        ttl_ns: The tenant's lifetime of a report, nanoseconds, > 0.
        serving_count: Replicas with at least one entry in the scope, >= 0.
        stats: Latest statistics of the (tenant, model), by replica id.
        settings: The ranker's knobs.
        ttft_ms: The request's time-to-first-token target, milliseconds; 0 means none.
    """

    now_ns: int
    ttl_ns: int
    serving_count: int
    stats: Mapping[str, StatsRecord]
    settings: RankingSettings
    ttft_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """Why one candidate got its score: the product of the first five, as a float32.

    Attributes:
        matched_tokens: Leading tokens it holds.
        freshness: Of its oldest block in the match, in [0, 1].
        pressure_factor: What its load leaves over, in [0, 1].
        slo_bias: Bonus under a tight target, >= 1.
        distinguishing_power: How much the match tells replicas apart, in [0, 1].
        score: The result.
    """

    matched_tokens: int
    freshness: float
    pressure_factor: float
    slo_bias: float
    distinguishing_power: float
    score: float


_FEW: Final = 8
"""Most candidates that are scored one by one."""


class _Columns(NamedTuple):
    """The candidates turned by 90 degrees, and one list per factor aligned with them."""

    replica_ids: Sequence[str]
    tokens: Sequence[int]
    tiers: Sequence[int]
    blocks: Sequence[int]
    freshness: Sequence[float]
    pressure: Sequence[float]
    bias: Sequence[float]
    power: Sequence[float]
    scores: Sequence[float]


def rank_matches(candidates: Sequence[Candidate], inputs: RankInputs) -> list[RankedReplica]:
    """Score every candidate and return all of them, best first; ties go by replica id.

    Args:
        candidates: Each replica at most once, in any order, with 0 <= matched_tokens < 2**31.
        inputs: Time, lifetime, denominator, statistics and knobs.

    Returns:
        One row per candidate, also those with score 0.

    Complexity: O(n log n) in candidates.
    """
    if not candidates:
        return []
    if len(candidates) <= _FEW:
        return _rank_few(candidates, inputs)
    of = _columns(candidates, inputs)
    rows = zip(
        of.replica_ids,
        of.scores,
        of.tokens,
        of.freshness,
        public_tiers(of.tiers),
        of.blocks,
        strict=True,
    )
    return best_first(rows, of.scores)


def _rank_few(candidates: Sequence[Candidate], inputs: RankInputs) -> list[RankedReplica]:
    """Do what :func:`rank_matches` does, candidate by candidate; there is at least one."""
    now_ns, ttl_ns, serving_count, stats, settings, ttft_ms = inputs
    weight, stale_ns = settings.pressure_weight, now_ns - ttl_ns
    coefficient = slo_coefficient(ttft_ms, settings.slo_tight_ttft_ms, settings.slo_tight_bias)
    _, tokens, _, _, blocks = zip(*candidates, strict=True)
    products, recencies = [], []
    for candidate, power in zip(candidates, _powers(tokens, blocks, serving_count), strict=True):
        recency = freshness(now_ns - candidate[2], ttl_ns)
        product = candidate[1] * recency
        if stats and weight:
            record = stats.get(candidate[0])
            if record is not None and record.reported_ns > stale_ns:
                product *= pressure_factor(record.stats.pressure, weight)
        if coefficient:
            product *= slo_bias(recency, coefficient)
        products.append(product * power)
        recencies.append(recency)
    scores = round_float32(products)
    rows = [
        (replica_id, score, tokens, recency, public_tier(tier), blocks)
        for (replica_id, tokens, _, tier, blocks), score, recency in zip(
            candidates, scores, recencies, strict=True
        )
    ]
    return best_first(rows, scores)


def explain_matches(candidates: Sequence[Candidate], inputs: RankInputs) -> dict[str, Factors]:
    """Return the factors behind each score of :func:`rank_matches`, by replica id.

    All candidates are needed to explain one, because distinguishing power compares them.

    Args:
        candidates: As for :func:`rank_matches`.
        inputs: As for :func:`rank_matches`.

    Complexity: O(n log n) in candidates.
    """
    if not candidates:
        return {}
    of = _columns(candidates, inputs)
    return {
        replica_id: Factors(
            matched_tokens=of.tokens[place],
            freshness=of.freshness[place],
            pressure_factor=of.pressure[place],
            slo_bias=of.bias[place],
            distinguishing_power=of.power[place],
            score=of.scores[place],
        )
        for place, replica_id in enumerate(of.replica_ids)
    }


def _columns(candidates: Sequence[Candidate], inputs: RankInputs) -> _Columns:
    """Return every factor and the rounded score of every candidate; there is at least one."""
    replica_ids, tokens, seen_ns, tiers, blocks = zip(*candidates, strict=True)
    fresh = _freshnesses(seen_ns, inputs)
    pressure = _pressures(replica_ids, inputs)
    bias = _biases(fresh, inputs)
    power = _powers(tokens, blocks, inputs.serving_count)
    scores = round_float32(
        [
            t * f * p * b * d
            for t, f, p, b, d in zip(tokens, fresh, pressure, bias, power, strict=True)
        ]
    )
    return _Columns(replica_ids, tokens, tiers, blocks, fresh, pressure, bias, power, scores)


def _freshnesses(seen_ns: Sequence[int], inputs: RankInputs) -> list[float]:
    """Return the freshness of each candidate; inline where no clamping can be needed."""
    now_ns, ttl_ns = inputs.now_ns, inputs.ttl_ns
    left_ns = ttl_ns - now_ns
    if max(seen_ns) <= now_ns and min(seen_ns) + left_ns >= 0:
        return [(left_ns + seen) / ttl_ns for seen in seen_ns]
    return [freshness(now_ns - seen, ttl_ns) for seen in seen_ns]


def _pressures(replica_ids: Sequence[str], inputs: RankInputs) -> list[float]:
    """Return the pressure factors; statistics older than the TTL do not count."""
    stats, weight = inputs.stats, inputs.settings.pressure_weight
    if not stats or weight == 0:
        return [1.0] * len(replica_ids)
    stale_ns = inputs.now_ns - inputs.ttl_ns
    return [
        1.0
        if record is None or record.reported_ns <= stale_ns
        else factor
        if 0.0 <= (factor := 1.0 - weight * record.stats.pressure) <= 1.0
        else pressure_factor(record.stats.pressure, weight)
        for record in map(stats.get, replica_ids)
    ]


def _biases(fresh: list[float], inputs: RankInputs) -> list[float]:
    """Return the SLO biases."""
    settings = inputs.settings
    coefficient = slo_coefficient(
        inputs.ttft_ms, settings.slo_tight_ttft_ms, settings.slo_tight_bias
    )
    if coefficient == 0:
        return [1.0] * len(fresh)
    return [slo_bias(recency, coefficient) for recency in fresh]


def _powers(tokens: Sequence[int], blocks: Sequence[int], serving_count: int) -> list[float]:
    """Return the distinguishing powers, comparing each candidate by its matched tokens.

    Candidates that matched equally many blocks share one power. In a chain lookup they matched
    the same tokens anyway; in an exact lookup the stored counts may differ, but a holder is a
    holder.
    """
    if serving_count <= 1:
        return [1.0] * len(tokens)
    if len(set(blocks)) == 1:
        return [distinguishing_power(len(tokens), serving_count)] * len(tokens)
    power = {
        depth: 1.0 - place / serving_count if place < serving_count else 0.0
        for place, depth in enumerate(sorted(tokens, reverse=True), start=1)
    }
    return list(map(power.__getitem__, tokens))
