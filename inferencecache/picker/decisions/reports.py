"""What callers report about a decision."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTokenReport:
    """The destination has begun to answer.

    Attributes:
        observed_ttft_ms: From dispatch to the first byte, as the caller has measured it.
        upstream_status: HTTP status.
    """

    observed_ttft_ms: int
    upstream_status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalTokenReport:
    """The answer is complete.

    Attributes:
        model: The model that answered.
        prompt_tokens: Tokens of the prompt.
        completion_tokens: Tokens of the answer.
        cached_tokens: Tokens of the prompt that were in a cache; None if nobody knows.
        itl_bucket_counts: Gaps between tokens by bucket.
        itl_bucket_layout: Which buckets.
    """

    model: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None
    itl_bucket_counts: tuple[int, ...]
    itl_bucket_layout: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortReport:
    """The request will not be dispatched.

    Attributes:
        reason: Name of the reason on the wire; a number that has no name is written out.
        detail: In the caller's words, shortened.
    """

    reason: str
    detail: str
