"""Rank the replicas that hold a leading part of a prompt; exact and chain lookups share it.

Rules of this file: each factor is a column over all candidates. The answer multiplies the columns
without a Python step per candidate, the explanation shows the same ones, so the two cannot drift
apart. A column that is 1 for everybody is left out, and what needs no clamping stands inline; a
property test holds the columns to the definitions in :mod:`inferencecache.ranking.factors`.

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

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import mul
from typing import NamedTuple

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
    public_tiers,
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


def rank_matches(candidates: Sequence[Candidate], inputs: RankInputs) -> list[RankedReplica]:
    """Score every candidate and return all of them, best first; ties go by replica id.

    Args:
        candidates: Each replica at most once, in any order, with 0 <= matched_tokens < 2**31.
        inputs: Time, lifetime, denominator, statistics and knobs.

    Returns:
        One row per candidate, also those with score 0.

    Complexity: O(n log n) in candidates.
    """
    return best_first(_scored(candidates, inputs)) if candidates else []


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
    replica_ids, tokens, _, _, blocks = zip(*candidates, strict=True)
    ranked = _scored(candidates, inputs)
    loads = _loads(replica_ids, inputs)
    biases = _biases([replica.estimated_cache_hit_prob for replica in ranked], inputs)
    powers = _powers(tokens, blocks, inputs.serving_count)
    return {
        replica.replica_id: Factors(
            matched_tokens=replica.matched_tokens,
            freshness=replica.estimated_cache_hit_prob,
            pressure_factor=load,
            slo_bias=bias,
            distinguishing_power=power,
            score=replica.score,
        )
        for replica, load, bias, power in zip(ranked, loads, biases, powers, strict=False)
    }


def _scored(candidates: Sequence[Candidate], inputs: RankInputs) -> list[RankedReplica]:
    """Return each candidate with its score, in the order given; there is at least one."""
    now_ns, ttl_ns, serving_count, stats, _, ttft_ms = inputs
    stale_ns = now_ns - ttl_ns
    # All rows have one length; being strict about it costs half a microsecond each time.
    replica_ids, tokens, seen_ns, tiers, blocks = zip(*candidates)  # noqa: B905
    recencies = [(seen - stale_ns) / ttl_ns for seen in seen_ns]
    if min(recencies) <= 0.0 or max(recencies) > 1.0:
        recencies = [freshness(now_ns - seen, ttl_ns) for seen in seen_ns]
    products: Iterable[float] = map(mul, tokens, recencies)
    if stats:
        products = map(mul, products, _loads(replica_ids, inputs))
    if ttft_ms:
        products = map(mul, products, _biases(recencies, inputs))
    scores = array("f", map(mul, products, _powers(tokens, blocks, serving_count)))
    rows = zip(replica_ids, scores, tokens, recencies, public_tiers(tiers), blocks)  # noqa: B905
    # What the constructor does, without a Python call for each replica.
    return list(map(tuple.__new__, repeat(RankedReplica), rows))


def _loads(replica_ids: Sequence[str], inputs: RankInputs) -> Iterable[float]:
    """Return the pressure factors; statistics older than the TTL do not count."""
    stats, weight = inputs.stats, inputs.settings.pressure_weight
    if not stats or weight == 0:
        return repeat(1.0)
    stale_ns = inputs.now_ns - inputs.ttl_ns
    return [
        1.0
        if record is None or record.reported_ns <= stale_ns
        else factor
        if 0.0 <= (factor := 1.0 - weight * record.stats.pressure) <= 1.0
        else pressure_factor(record.stats.pressure, weight)
        for record in map(stats.get, replica_ids)
    ]


def _biases(recencies: Sequence[float], inputs: RankInputs) -> Iterable[float]:
    """Return the SLO biases."""
    settings = inputs.settings
    coefficient = slo_coefficient(
        inputs.ttft_ms, settings.slo_tight_ttft_ms, settings.slo_tight_bias
    )
    if coefficient == 0:
        return repeat(1.0)
    return [slo_bias(recency, coefficient) for recency in recencies]


def _powers(tokens: Sequence[int], blocks: Sequence[int], serving_count: int) -> Iterable[float]:
    """Return the distinguishing powers, comparing each candidate by its matched tokens.

    Candidates that matched equally many blocks share one power. In a chain lookup they matched
    the same tokens anyway; in an exact lookup the stored counts may differ, but a holder is a
    holder.
    """
    if serving_count <= 1:
        return repeat(1.0)
    count = len(blocks)
    if blocks.count(blocks[0]) == count:
        return repeat(distinguishing_power(count, serving_count))
    power = {
        depth: distinguishing_power(place, serving_count)
        for place, depth in enumerate(sorted(tokens, reverse=True), start=1)
    }
    return map(power.__getitem__, tokens)
