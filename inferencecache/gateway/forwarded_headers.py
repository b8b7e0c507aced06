"""Which headers go on, in either direction.

Rules of this file: what is about one connection stays there, and so does what it names. What a
client shows to get past this gateway is nobody else's, so credentials and cookies are not sent on,
nor are those headers in which the gateway itself is told things. A value that no header can carry
is left out with its name.
"""

import re
from collections.abc import Container, Iterable, Iterator
from typing import Final

Headers = Iterable[tuple[str, str]]

_CONNECTION: Final = "connection"
_HOP_BY_HOP: Final = frozenset(
    {
        _CONNECTION,
        "keep-alive",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OWN_REQUEST: Final = frozenset(
    {"accept-encoding", "content-encoding", "content-length", "expect", "host"}
)
_CREDENTIALS: Final = frozenset({"authorization", "cookie", "x-api-key", "api-key"})
_SOUND: Final = re.compile(r"[\t\x20-\x7e\x80-\ud7ff\ue000-\U0010ffff]*")
_OWN_ANSWER: Final = frozenset({"date", "location", "server", "set-cookie"})


def request_headers(headers: Headers, dropped: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield those of a client's *headers* that a destination gets.

    Args:
        headers: Names and values in order.
        dropped: Further names that stay here.

    >>> [*request_headers([("Connection", "x-a"), ("X-A", "1"), ("X-B", "2")], ())]
    [('X-B', '2')]
    """
    kept = list(headers)
    stays = _hop_by_hop(kept) | _OWN_REQUEST | _CREDENTIALS | {name.lower() for name in dropped}
    return _sent_on(kept, stays)


def answer_headers(headers: Headers) -> Iterator[tuple[str, str]]:
    """Yield those of a destination's *headers* that the client gets, with the length."""
    kept = list(headers)
    stays = _hop_by_hop(kept) | _OWN_ANSWER
    return _sent_on(kept, stays)


def _sent_on(headers: Headers, stays: Container[str]) -> Iterator[tuple[str, str]]:
    return (
        (name, value)
        for name, value in headers
        if name.lower() not in stays and _SOUND.fullmatch(value)
    )


def _hop_by_hop(headers: Headers) -> frozenset[str]:
    """Return the lower-case names of what is about this connection alone."""
    named = (
        option.strip().lower()
        for name, value in headers
        if name.lower() == _CONNECTION
        for option in value.split(",")
    )
    return _HOP_BY_HOP.union(named)
