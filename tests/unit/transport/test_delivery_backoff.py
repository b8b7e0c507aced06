"""Pauses between attempts."""

from inferencecache.settings.delivery import DeliverySettings
from inferencecache.transport.delivery_backoff import Backoff


def test_pauses_grow_to_their_limit_and_start_again() -> None:
    """Each lies in the upper half of its limit, which doubles up to the longest."""
    backoff = Backoff(DeliverySettings(retry_initial_ns=1_000_000, retry_max_ns=3_000_000))
    pauses = [backoff.next_ns() for _ in range(4)]
    backoff.reset()
    again = backoff.next_ns()

    for pause, limit in zip([*pauses, again], [1, 2, 3, 3, 1], strict=True):
        assert limit * 500_000 <= pause <= limit * 1_000_000
