"""Rank the replicas that hold a leading part of a prompt; exact and chain lookups share it.

Rules of this file: there is one loop, :func:`_scored`, and both the answer and the explanation come
from it, so the two cannot drift apart. It is the hot path of every lookup, so the definitions of
:mod:`inferencecache.ranking.factors` stand in it inline where nothing needs clamping; a property
test holds it to them.

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
from operator import itemgetter
from typing import Final, NamedTuple

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


_REPLICA_ID: Final = itemgetter(0)
_TOKENS: Final = itemgetter(1)
_BLOCKS: Final = itemgetter(4)

_Shown = tuple[float, float, float, float]
"""Freshness, pressure factor, SLO bias and distinguishing power of one candidate."""


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
    shown: list[_Shown] = []
    scored = _scored(candidates, inputs, shown) if candidates else []
    return {
        replica_id: Factors(
            matched_tokens=tokens,
            freshness=recency,
            pressure_factor=load,
            slo_bias=bias,
            distinguishing_power=power,
            score=score,
        )
        for (replica_id, score, tokens, *_), (recency, load, bias, power) in zip(
            scored, shown, strict=True
        )
    }


def _scored(
    candidates: Sequence[Candidate], inputs: RankInputs, shown: list[_Shown] | None = None
) -> list[RankedReplica]:
    """Return each candidate with its score, in the order given; there is at least one.

    Args:
        candidates: As for :func:`rank_matches`.
        inputs: As for :func:`rank_matches`.
        shown: Gets the factors of each candidate when given.
    """
    now_ns, ttl_ns, serving_count, _, settings, ttft_ms = inputs
    stale_ns = now_ns - ttl_ns
    coefficient = slo_coefficient(ttft_ms, settings.slo_tight_ttft_ms, settings.slo_tight_bias)
    products: list[float] = []
    recencies: list[float] = []
    bias = 1.0
    for (_, tokens, seen_ns, _, _), load, power in zip(
        candidates, _loads(candidates, inputs), _powers(candidates, serving_count), strict=False
    ):
        recency = (seen_ns - stale_ns) / ttl_ns
        if not 0.0 < recency <= 1.0:
            recency = freshness(now_ns - seen_ns, ttl_ns)
        if coefficient:
            bias = slo_bias(recency, coefficient)
        products.append(tokens * recency * load * bias * power)
        recencies.append(recency)
        if shown is not None:
            shown.append((recency, load, bias, power))
    make, tier_of = tuple.__new__, PUBLIC_TIERS.get
    # What the constructor does, without a Python call for each replica.
    return [
        make(RankedReplica, (replica_id, score, tokens, recency, tier_of(tier, 0), blocks))
        for (replica_id, tokens, _, tier, blocks), score, recency in zip(
            candidates, array("f", products), recencies, strict=False
        )
    ]


def _loads(candidates: Sequence[Candidate], inputs: RankInputs) -> Iterable[float]:
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
        for record in map(stats.get, map(_REPLICA_ID, candidates))
    ]


def _powers(candidates: Sequence[Candidate], serving_count: int) -> Iterable[float]:
    """Return the distinguishing powers, comparing each candidate by its matched tokens.

    Candidates that matched equally many blocks share one power. In a chain lookup they matched
    the same tokens anyway; in an exact lookup the stored counts may differ, but a holder is a
    holder.
    """
    count = len(candidates)
    if serving_count <= 1:
        return repeat(1.0)
    if len(set(map(_BLOCKS, candidates))) == 1:
        return repeat(distinguishing_power(count, serving_count))
    tokens = list(map(_TOKENS, candidates))
    power = {
        depth: distinguishing_power(place, serving_count)
        for place, depth in enumerate(sorted(tokens, reverse=True), start=1)
    }
    return map(power.__getitem__, tokens)
