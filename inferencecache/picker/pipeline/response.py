"""A response as plugins see it: what callers report, in the pieces in which they report it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from inferencecache.picker.choice import NO_HEADERS


class TerminationCause(StrEnum):
    """Why there will be no more."""

    FINISHED = "finished"
    """The caller reported the final token."""
    ABORTED = "aborted"
    """The caller said that the request will not be dispatched."""
    EXPIRED = "expired"
    """Nobody reported anything for too long."""
    EVICTED = "evicted"
    """There were too many decisions, and it was the oldest."""
    WITHDRAWN = "withdrawn"
    """It never was a decision: a PreRequest plugin failed, or the body was gone by then."""
    STOPPED = "stopped"
    """The server ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a request took.

    Attributes:
        prompt_tokens: Tokens of the prompt; 0 if nobody knows.
        completion_tokens: Tokens of the answer.
        cached_tokens: Tokens of the prompt that were in a cache; None if nobody knows.
        itl_bucket_counts: Gaps between tokens by bucket.
        itl_bucket_layout: Which buckets.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None
    itl_bucket_counts: tuple[int, ...] = ()
    itl_bucket_layout: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One piece of news about a response.

    Attributes:
        request_id: The caller's name for the request.
        headers: ``:status`` alone, since callers pass on no other; none in the body's hooks.
        status: HTTP status of the destination; None where nobody reported it.
        observed_ttft_ms: Time to the first token as the caller saw it; None likewise.
        start_of_stream: Whether this is the first news of the body.
        end_of_stream: Whether this is the last news.
        termination: Why there will be no more; None before the end.
        usage: What it took; None where nobody reported it.
        served_model: The model that answered; empty where nobody reported it.
        abort_reason: What the caller gave with its Abort; empty for any other end.
    """

    request_id: str
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    status: int | None = None
    observed_ttft_ms: int | None = None
    start_of_stream: bool = False
    end_of_stream: bool = False
    termination: TerminationCause | None = None
    usage: Usage | None = None
    served_model: str = ""
    abort_reason: str = ""
