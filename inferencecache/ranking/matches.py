"""Rank the replicas that hold a leading part of a prompt; exact and chain lookups share it.

Rules of this file: there is one loop, :func:`_scored`. The explanation shows what it multiplies, so
the two cannot drift apart. It is the hot path of every lookup: what is 1 for everybody is left out,
what needs no clamping stands inline, and plain bytecode is preferred to C functions that nothing
else calls, because those are never in the cache when a lookup comes. A property test holds the loop
to the definitions in :mod:`inferencecache.ranking.factors`.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from inferencecache.ranking.factors import (
    distinguishing_power,
    freshness,
    pressure_factor,
    slo_bias,
    slo_coefficient,
)
from inferencecache.ranking.score import (
    PUBLIC_TIERS,
    RankedReplica,
    best_first,
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
    loads = _loads(candidates, inputs)
    shared_power, powers = _powers(candidates, inputs.serving_count)
    coefficient = _coefficient(inputs)
    return {
        replica.replica_id: Factors(
            matched_tokens=replica.matched_tokens,
            freshness=replica.estimated_cache_hit_prob,
            pressure_factor=loads.get(replica.replica_id, 1.0),
            slo_bias=slo_bias(replica.estimated_cache_hit_prob, coefficient),
            distinguishing_power=powers.get(replica.matched_tokens, shared_power),
            score=replica.score,
        )
        for replica in _scored(candidates, inputs)
    }


def _scored(candidates: Sequence[Candidate], inputs: RankInputs) -> list[RankedReplica]:
    """Return each candidate with its score, in the order given; there is at least one."""
    now_ns, ttl_ns, serving_count, stats, _, ttft_ms = inputs
    stale_ns = now_ns - ttl_ns
    loads = _loads(candidates, inputs) if stats else None
    coefficient = _coefficient(inputs) if ttft_ms else 0.0
    shared_power, powers = _powers(candidates, serving_count)
    rounded = array("f", (0.0,))
    make = tuple.__new__
    ranked: list[RankedReplica] = []
    for replica_id, tokens, seen_ns, tier, blocks in candidates:
        recency = (seen_ns - stale_ns) / ttl_ns
        if not 0.0 < recency <= 1.0:
            recency = freshness(now_ns - seen_ns, ttl_ns)
        product = tokens * recency
        if loads:
            product *= loads[replica_id]
        if coefficient:
            product *= slo_bias(recency, coefficient)
        rounded[0] = product * (powers[tokens] if powers else shared_power)
        tier_shown = tier if tier in PUBLIC_TIERS else 0
        # What the constructor does, without a Python call for each replica.
        row = (replica_id, rounded[0], tokens, recency, tier_shown, blocks)
        ranked.append(make(RankedReplica, row))
    return ranked


def _loads(candidates: Sequence[Candidate], inputs: RankInputs) -> dict[str, float]:
    """Return the pressure factors by replica, none where nobody's load counts.

    Statistics older than the TTL do not count.
    """
    stats, weight = inputs.stats, inputs.settings.pressure_weight
    if not stats or weight == 0:
        return {}
    stale_ns = inputs.now_ns - inputs.ttl_ns
    return {
        candidate[0]: 1.0
        if (record := stats.get(candidate[0])) is None or record.reported_ns <= stale_ns
        else factor
        if 0.0 <= (factor := 1.0 - weight * record.stats.pressure) <= 1.0
        else pressure_factor(record.stats.pressure, weight)
        for candidate in candidates
    }


def _coefficient(inputs: RankInputs) -> float:
    """Return how strongly the request favours fresh entries."""
    settings = inputs.settings
    return slo_coefficient(inputs.ttft_ms, settings.slo_tight_ttft_ms, settings.slo_tight_bias)


def _powers(candidates: Sequence[Candidate], serving_count: int) -> tuple[float, dict[int, float]]:
    """Return the distinguishing power that all candidates share, or a table by matched tokens.

    Candidates that matched equally many blocks share one power. In a chain lookup they matched
    the same tokens anyway; in an exact lookup the stored counts may differ, but a holder is a
    holder. The table is empty where the power is shared.
    """
    depth = candidates[0][4]
    for candidate in candidates:
        if candidate[4] != depth:
            break
    else:
        return distinguishing_power(len(candidates), serving_count), {}
    deepest_first = sorted([candidate[1] for candidate in candidates], reverse=True)
    return 0.0, {
        tokens: distinguishing_power(place, serving_count)
        for place, tokens in enumerate(deepest_first, start=1)
    }
