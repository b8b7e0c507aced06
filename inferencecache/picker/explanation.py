"""Why a Pick came out as it did, for people; nothing of a prompt, and no secret."""

from dataclasses import dataclass
from typing import NamedTuple


class ExplainedCandidate(NamedTuple):
    """One place that was looked at.

    Attributes:
        name: Where it is.
        tier: Of the pool; empty for those that were kept away.
        model: What the body would name.
        barrier: What kept it away, ``none`` if nothing did.
        in_flight: Requests it had to do.
        rank: From 1, the order in which it would be tried; 0 if it would not be.
        score: What the order comes from.
    """

    name: str
    tier: str
    model: str
    barrier: str
    in_flight: int
    rank: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a choice was made.

    Attributes:
        pool: Where it was looked, ``namespace/name``; empty for everything.
        model: What was looked for, after rules and defaults.
        need_tokens: What the request asks of a context window.
        is_counted: Whether its prompt was counted, not estimated.
        candidates: Some of them, the chosen one and the best first.
        candidates_total: How many there were.
    """

    pool: str
    model: str
    need_tokens: int
    is_counted: bool
    candidates: tuple[ExplainedCandidate, ...]
    candidates_total: int
