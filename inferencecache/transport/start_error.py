"""The error of a server that cannot start for a reason outside its settings."""

from inferencecache.errors import InferenceCacheError


class StartError(InferenceCacheError):
    """Something the server needs is not there or not usable; the process ends with exit code 1.

    Args:
        event: Name of the log event.
        reason: What is wrong, without any secret.
    """

    def __init__(self, *, event: str, reason: str) -> None:
        super().__init__(f"{event}: {reason}")
        self.event = event
        self.reason = reason
