"""Whether a request that failed is tried once more."""

from enum import StrEnum
from typing import Final


class Failure(StrEnum):
    """Why an attempt came to nothing."""

    STALE_ID = "stale_id"
    """The picker does not know the request any more."""
    PULL_FAILED = "pull_failed"
    """The picker did not hand out the whole body."""
    UNRESOLVED = "unresolved"
    """The backend of the provider is not there, or not usable."""
    UNAUTHORIZED = "unauthorized"
    """The provider refuses the key."""
    UNREACHABLE = "unreachable"
    """There is no connection, or it ended without an answer."""
    SLOW = "slow"
    """No answer in time."""
    ODD_ANSWER = "odd_answer"
    """An answer that is none to an inference request."""
    CUT = "cut"
    """An answer that ended before its end, of which the client has seen a part."""


_WORTH_IT: Final = frozenset(Failure) - {Failure.SLOW, Failure.ODD_ANSWER, Failure.CUT}
"""What took long has cost the client its patience, and may still be worked on."""


def may_retry(failure: Failure, attempts_left: int, *, is_replayable: bool) -> bool:
    """Return whether there is another attempt.

    Args:
        failure: Why this one failed.
        attempts_left: How many more there may be.
        is_replayable: Whether the whole body is there once more.

    >>> may_retry(Failure.UNREACHABLE, 1, is_replayable=True)
    True
    >>> may_retry(Failure.UNREACHABLE, 0, is_replayable=True)
    False
    """
    return failure in _WORTH_IT and attempts_left > 0 and is_replayable
