"""How an attempt to serve a request ends when it does not end in an answer."""

from inferencecache.errors import InferenceCacheError
from inferencecache.gateway import Failure, Refusal


class RefusedError(InferenceCacheError):
    """The client is told so; there is no other attempt.

    Args:
        refusal: What it is told.
    """

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class AttemptFailedError(InferenceCacheError):
    """This attempt came to nothing; another one may do better.

    Args:
        failure: Why.
        refusal: What the client is told if there is no other attempt.
        detail: For logs and the picker.
    """

    def __init__(self, failure: Failure, refusal: Refusal, detail: str = "") -> None:
        super().__init__(f"{failure}: {detail}")
        self.failure = failure
        self.refusal = refusal
        self.detail = detail


class AnswerCutError(ConnectionResetError):
    """The answer ended before its end, and with it the client's connection.

    Args:
        reason: How, without an address.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PickerDownError(InferenceCacheError):
    """There is no picker to ask."""
