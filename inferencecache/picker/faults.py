"""Why a call for a body or a decision cannot be served; each kind has one status on the wire."""

from inferencecache.errors import InferenceCacheError, InvalidRequestError


class UnknownIdError(InferenceCacheError):
    """Nobody has this id: it was never given out, its time is over, or it is used up.

    Args:
        field: Which id.
    """

    def __init__(self, field: str) -> None:
        super().__init__(f"{field}: unknown, expired or released")
        self.field = field


class UsedBodyError(InferenceCacheError):
    """Another Pick has had this body."""

    def __init__(self) -> None:
        super().__init__("body_stream_id: an earlier Pick has used it")


class BudgetError(InferenceCacheError):
    """There is no room.

    Args:
        what: What is too large or too many.
        limit: How much is allowed.
    """

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"{what}: more than {limit}")
        self.what = what
        self.limit = limit


class IdleUploadError(InferenceCacheError):
    """An upload was silent for too long."""

    def __init__(self) -> None:
        super().__init__("the upload was silent for too long")


class LengthError(InvalidRequestError):
    """A body is not as long as its sender said.

    Args:
        declared: What the sender said, in bytes.
        received: What has arrived, in bytes.
    """

    def __init__(self, declared: int, received: int) -> None:
        super().__init__(
            field="kinference-declared-length", value=declared, allowed=f"{received}, what arrived"
        )


class DrainingError(InferenceCacheError):
    """The server is about to end and takes no new body."""

    def __init__(self) -> None:
        super().__init__("the server is about to end; upload to another one")


class CutPullError(InferenceCacheError):
    """A body was released while it was being handed out."""

    def __init__(self) -> None:
        super().__init__("the body was released by an Abort")
