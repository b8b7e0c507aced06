"""Say in words why no cache server answered, as far as gRPC's text tells.

gRPC has one status for everything that keeps a connection from being made, and a text for the
people who wrote it. Whoever mistyped an address is helped by neither.
"""

from typing import Final

from inferencecache.transport.client_values import LookupQuery
from inferencecache.types import PROBE_TENANT_ID

REACH_QUERY: Final = LookupQuery(
    tenant_id=PROBE_TENANT_ID, model_id="reach", hash_scheme="reach", prefix_hash=b"reach"
)
"""What to ask to find out whether a server answers: NO_HINT, without a look into its index."""

_MEANINGS: Final = (
    ("Connection refused", "the connection is refused, so nothing listens there"),
    ("http1.x server", "what listens there speaks HTTP/1.1; gRPC is on another port"),
    ("hostname lookup error", "the host name has no address"),
    ("DNS resolution failed", "the host name has no address"),
    ("Socket closed", "the connection is closed at once, as TLS servers do to plaintext"),
    (
        "Connection reset",
        "the connection is closed at once, as TLS servers do to plaintext",
    ),
    ("timed out", "there is no answer"),
    ("Deadline Exceeded", "there is no answer"),
    ("UNIMPLEMENTED", "what listens there is no cache server"),
)
"""Part of a text of gRPC, and what it means to somebody who gave an address."""


def why_unreachable(detail: str) -> str:
    """Return what *detail* means; itself if that is not known.

    Args:
        detail: What gRPC said of a call that failed, in one line.
    """
    for part, meaning in _MEANINGS:
        if part in detail:
            return meaning
    return detail
