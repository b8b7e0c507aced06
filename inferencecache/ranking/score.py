"""What a ranking consists of: rounding and order."""

from array import array
from collections.abc import Iterable
from operator import itemgetter
from typing import Final, NamedTuple

from inferencecache.types import CacheTier

FLOAT32_MAX: Final = 3.4028234663852886e38
"""Largest finite score the wire can carry."""

PUBLIC_TIERS: Final = frozenset(map(int, (CacheTier.T1, CacheTier.T2, CacheTier.T3)))
"""Stored tiers that the wire knows; any other is 0 there."""


class RankedReplica(NamedTuple):
    """One replica of an answer.

    Attributes:
        replica_id: The replica.
        score: Larger is better; a float32 value, >= 0, comparable only within one answer.
        matched_tokens: Leading tokens of the request the replica holds, >= 0.
        estimated_cache_hit_prob: Freshness of the match, or the hit rate of a warm replica.
        tier: Coldest tier of the match, as on the wire: 1 to 3, or 0 for unspecified.
        matched_blocks: Leading blocks of the request the replica holds, >= 0.
    """

    replica_id: str
    score: float
    matched_tokens: int
    estimated_cache_hit_prob: float
    tier: int
    matched_blocks: int


_REPLICA_ID: Final = itemgetter(0)
_SCORE: Final = itemgetter(1)


def public_tier(tier: int) -> int:
    """Return *tier* as the wire knows it: 1 to 3 as they are, anything else 0.

    Args:
        tier: A stored tier, any int32.

    Complexity: O(1).
    """
    return tier if tier in PUBLIC_TIERS else 0


def round_float32(values: Iterable[float]) -> list[float]:
    """Return *values* rounded to single precision, as doubles.

    Args:
        values: Numbers within the range of a float32.

    Complexity: O(values).
    """
    return array("f", values).tolist()


def best_first(ranked: list[RankedReplica]) -> list[RankedReplica]:
    """Return *ranked*, sorted in place: by score, largest first, then by replica id.

    The sort is stable, so ordering by id first settles ties; there are hardly ever any.

    Args:
        ranked: Replicas in any order, each at most once.

    Complexity: O(n log n) in replicas.
    """
    ranked.sort(key=_SCORE, reverse=True)
    better = -1.0
    for replica in ranked:
        score = replica[1]
        if score == better:
            ranked.sort(key=_REPLICA_ID)
            ranked.sort(key=_SCORE, reverse=True)
            break
        better = score
    return ranked
