"""What plugins may raise on purpose, and what is raised about them."""

from inferencecache.errors import InferenceCacheError


class DeniedError(InferenceCacheError):
    """A PreAdmitter or an Admitter says no: the answer is POLICY_REJECTED.

    Args:
        reason: Why, in few words that say nothing secret; callers see them.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = f"{reason}"  # it becomes part of an answer, whatever a plugin gives


class NoSignalError(InferenceCacheError):
    """A scorer has nothing to go by; it is left out and the answer says so.

    Args:
        signal: What is missing.
    """

    def __init__(self, signal: str) -> None:
        super().__init__(f"no {signal}")
        self.signal = signal


class InvalidAnswerError(InferenceCacheError):
    """A plugin returned something that its hook may not return."""
