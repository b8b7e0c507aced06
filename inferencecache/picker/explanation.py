"""Why a Pick came out as it did, for people; nothing of a prompt, and no secret."""

from collections.abc import Sequence

import msgspec


class ExplainedCandidate(msgspec.Struct, frozen=True, gc=False):
    """One place that was looked at.

    Attributes:
        name: Where it is.
        tier: Of the pool; empty for those that were kept away.
        model: What the body would name.
        barrier: What kept it away, ``none`` if nothing did.
        in_flight: Requests that this picker had given it.
        queued_tokens: Tokens of theirs that it had yet to compute before their first token.
        requests: All that it had to do, as far as known; this, not ``in_flight``, is estimated by.
        waiting: Those of them that it had not begun with.
        prompt_tokens: Tokens of the prompt, as it counts them.
        matched_tokens: Tokens of the prompt that it has in its cache.
        source: Who says so.
        estimated_ms: When it was estimated to give a first token.
        predicted_ms: The same from reports; None where there were too few, or nobody ranks by it.
        rank: From 1, the order in which it would be tried; 0 if it would not be.
        score: What the order comes from: points of a profile, the more the better, or milliseconds.
    """

    name: str
    tier: str
    model: str
    barrier: str
    in_flight: int
    queued_tokens: int
    requests: int
    waiting: int
    prompt_tokens: int
    matched_tokens: int
    source: str
    estimated_ms: float
    predicted_ms: float | None
    rank: int
    score: float


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """How a choice was made.

    Attributes:
        pool: Where it was looked, ``namespace/name``; empty for everything.
        model: What was looked for, after rules and defaults.
        need_tokens: What the request asks of a context window.
        is_counted: Whether its prompt was counted, not estimated.
        prompt_tokens: Tokens of its prompt, counted or estimated.
        prefix: Where the matches come from; ``none`` without any source.
        candidates: Some of them, the chosen one and the best first.
        candidates_total: How many there were.
    """

    pool: str
    model: str
    need_tokens: int
    is_counted: bool
    prompt_tokens: int
    prefix: str
    candidates: Sequence[ExplainedCandidate]
    candidates_total: int
