"""Pauses between attempts: longer each time, and drawn at random so that producers spread out."""

import secrets

from inferencecache.settings.delivery import DeliverySettings


class Backoff:
    """Draws pauses.

    Args:
        settings: First and longest limit.
    """

    def __init__(self, settings: DeliverySettings) -> None:
        self._initial_ns = settings.retry_initial_ns
        self._max_ns = settings.retry_max_ns
        self._limit_ns = settings.retry_initial_ns

    def reset(self) -> None:
        """Begin with the shortest limit again."""
        self._limit_ns = self._initial_ns

    def next_ns(self) -> int:
        """Return the next pause in nanoseconds, at least half its limit; the limit doubles."""
        limit_ns = min(self._limit_ns, self._max_ns)
        self._limit_ns = 2 * limit_ns
        return limit_ns // 2 + secrets.randbelow(limit_ns // 2 + 1)
