"""Rank replicas for a lookup: pure arithmetic on what the index and the replicas said."""

from inferencecache.ranking.affinity import PromptDraw, affinity_seed
from inferencecache.ranking.factors import (
    distinguishing_power,
    freshness,
    pressure_factor,
    slo_bias,
    slo_coefficient,
)
from inferencecache.ranking.matches import Factors, RankInputs, explain_matches, rank_matches
from inferencecache.ranking.score import (
    RankedReplica,
    public_tier,
    round_float32,
)
from inferencecache.ranking.tenant_hot import WarmFactors, explain_tenant_hot, rank_tenant_hot

__all__ = [
    "Factors",
    "PromptDraw",
    "RankInputs",
    "RankedReplica",
    "WarmFactors",
    "affinity_seed",
    "distinguishing_power",
    "explain_matches",
    "explain_tenant_hot",
    "freshness",
    "pressure_factor",
    "public_tier",
    "rank_matches",
    "rank_tenant_hot",
    "round_float32",
    "slo_bias",
    "slo_coefficient",
]
