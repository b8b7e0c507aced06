"""What callers report about a decision."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

ITL_BUCKETS: Final = {1: 15}
"""How many buckets each known layout has."""


class ReportFlaw(StrEnum):
    """What of a report cannot be used; the rest of it counts all the same."""

    PROMPT_TOKENS = "prompt_tokens"
    """The prompt cannot have so many tokens; it counts as if nobody had counted them."""
    CACHED_TOKENS = "cached_tokens"
    """More tokens were in a cache than the prompt has; it counts as all of them.

    Where nobody has counted the prompt, nobody knows how many were in a cache, either.
    """
    ITL_LENGTH = "itl_length"
    """The gaps between tokens have not as many buckets as their layout."""
    ITL_LAYOUT = "itl_layout"
    """Nobody knows the layout."""


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
        prompt_tokens: Tokens of the prompt; 0 if nobody knows.
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


def usable(
    report: FinalTokenReport, prompt_tokens_max: int | None = None
) -> tuple[FinalTokenReport, tuple[ReportFlaw, ...]]:
    """Return what of *report* can be used, and what is wrong with the rest.

    No bucket at all is no flaw: an answer of one piece has no gaps.

    Args:
        report: As it came.
        prompt_tokens_max: Most tokens that the prompt can have; None if that is not known.
    """
    flaws: list[ReportFlaw] = []
    if prompt_tokens_max is not None and report.prompt_tokens > prompt_tokens_max:
        flaws.append(ReportFlaw.PROMPT_TOKENS)
        report = replace(report, prompt_tokens=0, cached_tokens=None)
    if report.cached_tokens is not None and report.cached_tokens > report.prompt_tokens:
        flaws.append(ReportFlaw.CACHED_TOKENS)
        report = replace(report, cached_tokens=report.prompt_tokens or None)  # 0 would be a miss
    if report.itl_bucket_counts:
        buckets = ITL_BUCKETS.get(report.itl_bucket_layout)
        if buckets != len(report.itl_bucket_counts):
            is_known = buckets is not None
            flaws.append(ReportFlaw.ITL_LENGTH if is_known else ReportFlaw.ITL_LAYOUT)
            report = replace(report, itl_bucket_counts=(), itl_bucket_layout=0)
    return report, tuple(flaws)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortReport:
    """The request will not be dispatched.

    Attributes:
        reason: Name of the reason on the wire; a number that has no name is written out.
        detail: In the caller's words, shortened.
    """

    reason: str
    detail: str
