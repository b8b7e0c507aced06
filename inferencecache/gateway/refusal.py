"""What a client is told when its request goes nowhere, and why it was that.

Rules of this file: a reason of the picker is shown, as it says nothing of a body; what a
destination or a file looks like on our side is not.
"""

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer of the gateway's own.

    Attributes:
        status: HTTP status.
        code: One word for programs.
        message: A sentence for people.
        may_retry_later: Whether the same request may succeed a moment later.
    """

    status: HTTPStatus
    code: str
    message: str
    may_retry_later: bool = False


NO_ROUTE: Final = Refusal(
    status=HTTPStatus.NOT_FOUND, code="unknown_url", message="There is nothing at this path."
)
NOT_ALLOWED: Final = Refusal(
    status=HTTPStatus.METHOD_NOT_ALLOWED,
    code="method_not_allowed",
    message="Only POST is allowed here.",
)
UNKNOWN_KEY: Final = Refusal(
    status=HTTPStatus.UNAUTHORIZED, code="invalid_api_key", message="The API key is not known."
)
UNPACKED_ONLY: Final = Refusal(
    status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    code="unsupported_encoding",
    message="Bodies with a Content-Encoding are not taken.",
)
BAD_HEAD: Final = Refusal(
    status=HTTPStatus.BAD_REQUEST,
    code="invalid_header",
    message="The tenant or the query is too long, or has characters that are not allowed there.",
)
BAD_UPLOAD: Final = Refusal(
    status=HTTPStatus.BAD_REQUEST,
    code="incomplete_body",
    message="The body is broken, or not as long as announced.",
)
SILENT_UPLOAD: Final = Refusal(
    status=HTTPStatus.REQUEST_TIMEOUT,
    code="body_timeout",
    message="The body did not arrive in time.",
)
TOO_LARGE: Final = Refusal(
    status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    code="body_too_large",
    message="The body is larger than is taken.",
)
PICKER_DOWN: Final = Refusal(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    code="router_unavailable",
    message="No destination can be chosen now.",
    may_retry_later=True,
)
LONG_HEAD: Final = Refusal(
    status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    code="headers_too_large",
    message="The headers that are passed on are too large together.",
)
_NO_ROOM: Final = replace(
    PICKER_DOWN, code="router_overloaded", message="There is no room for the body now."
)
_NOT_YOURS: Final = Refusal(
    status=HTTPStatus.FORBIDDEN,
    code="tenant_forbidden",
    message="This gateway may not send requests for this tenant.",
)
_CALLS: Final = {
    ("PushBody", "INVALID_ARGUMENT"): BAD_UPLOAD,
    ("PushBody", "DEADLINE_EXCEEDED"): SILENT_UPLOAD,
    ("PushBody", "RESOURCE_EXHAUSTED"): _NO_ROOM,
    ("PushBody", "PERMISSION_DENIED"): _NOT_YOURS,
    ("Pick", "PERMISSION_DENIED"): _NOT_YOURS,
    ("Pick", "INVALID_ARGUMENT"): BAD_HEAD,
    ("Pick", "RESOURCE_EXHAUSTED"): LONG_HEAD,
}
"""By method and status; of a Pick only what the client says can be wrong, or too much."""

_NEVER: Final = {
    "model=unknown": (HTTPStatus.NOT_FOUND, "model_not_found"),
    "context=exceeds": (HTTPStatus.BAD_REQUEST, "context_length_exceeded"),
    "api=unsupported": (HTTPStatus.BAD_REQUEST, "unsupported_api"),
}
"""Why nobody takes a request that will not be taken later, either."""

_PASSING: Final = frozenset({"limit", "shed"})
"""What a request is refused for that would be taken at another time."""


def refusal_of_call(method: str, status: str, detail: str) -> Refusal:
    """Return what a client is told when a call to the picker failed.

    Args:
        method: Which one.
        status: Its gRPC status, as the library writes it.
        detail: What the picker said.

    >>> refusal_of_call("PushBody", "RESOURCE_EXHAUSTED", "bytes of a body: more than 8").status
    <HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 413>
    >>> refusal_of_call("Pick", "UNAVAILABLE", "").code
    'router_unavailable'
    """
    if status == "RESOURCE_EXHAUSTED" and "bytes of a body" in detail:
        return TOO_LARGE
    return _CALLS.get((method, status), PICKER_DOWN)


def refusal_of_doubled(header: str) -> Refusal:
    """Return what a client is told that says twice what can be said once.

    Args:
        header: Its name.

    >>> refusal_of_doubled("x-tenant-id").message
    'The header x-tenant-id is given more than once.'
    """
    return replace(BAD_HEAD, message=f"The header {header} is given more than once.")


def refusal_of_pick(outcome: str, reason: str) -> Refusal:
    """Return what a client is told when the picker names no destination.

    Args:
        outcome: As the proto names it.
        reason: The picker's.

    >>> refusal_of_pick("NO_WORKERS", "model=unknown").status
    <HTTPStatus.NOT_FOUND: 404>
    >>> refusal_of_pick("POLICY_REJECTED", "policy=a/p;rule=1;limit=in_flight").status
    <HTTPStatus.TOO_MANY_REQUESTS: 429>
    """
    tokens = reason.split(";")
    if outcome == "BAD_REQUEST":
        return _told(HTTPStatus.BAD_REQUEST, "invalid_request", reason)
    if outcome == "POLICY_REJECTED":
        passes = any(token.partition("=")[0] in _PASSING for token in tokens)
        if passes and "limit=output_tokens" not in tokens:
            limited = _told(HTTPStatus.TOO_MANY_REQUESTS, "rate_limit_exceeded", reason)
            return replace(limited, may_retry_later=True)
        return _told(HTTPStatus.FORBIDDEN, "policy_rejected", reason)
    for token in tokens:
        if outcome == "NO_WORKERS" and token in _NEVER:
            return _told(*_NEVER[token], reason)
    nobody = _told(HTTPStatus.SERVICE_UNAVAILABLE, "no_destination", reason)
    return replace(nobody, may_retry_later=True)


def refusal_of_provider(code: str, message: str, *, is_slow: bool = False) -> Refusal:
    """Return what a client is told when a destination let its request down.

    Args:
        code: One word.
        message: A sentence.
        is_slow: Whether it took too long, instead of failing.
    """
    status = HTTPStatus.GATEWAY_TIMEOUT if is_slow else HTTPStatus.BAD_GATEWAY
    return Refusal(status=status, code=code, message=message)


_MESSAGES: Final = {
    "invalid_request": "The body is no inference request",
    "rate_limit_exceeded": "A limit is reached",
    "policy_rejected": "A rule does not allow the request",
    "model_not_found": "Nobody serves the model",
    "context_length_exceeded": "The request fits into no context window of the model",
    "unsupported_api": "Nobody serves the model by this API",
    "no_destination": "Nobody can take the request now",
}


def _told(status: HTTPStatus, code: str, reason: str) -> Refusal:
    return Refusal(status=status, code=code, message=f"{_MESSAGES[code]} ({reason}).")
