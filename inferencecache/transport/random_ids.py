"""Numbers that nobody can guess; no other module of the server draws them."""

import os
from random import SystemRandom

_ID_BYTES = 8
_SOURCE = SystemRandom()


def random_id() -> int:
    """Return 64 random bits."""
    return int.from_bytes(os.urandom(_ID_BYTES))


def random_share() -> float:
    """Return a number from 0 up to, but not including, 1."""
    return _SOURCE.random()


def random_jitter() -> float:
    """Return a number from -1 to 1."""
    return _SOURCE.uniform(-1, 1)
