"""Numbers that nobody can guess; no other module of the server draws them."""

import secrets

_ID_BITS = 64


def random_id() -> int:
    """Return 64 random bits."""
    return secrets.randbits(_ID_BITS)
