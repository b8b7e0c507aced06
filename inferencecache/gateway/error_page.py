"""An error as clients of each API read it."""

from typing import Final

import msgspec

from inferencecache.gateway.api_paths import ErrorForm
from inferencecache.gateway.refusal import Refusal

_SERVER_SIDE: Final = 500

_OPENAI_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_ANTHROPIC_TYPES: Final = {
    **_OPENAI_TYPES,
    413: "request_too_large",
    503: "overloaded_error",
    504: "timeout_error",
}


def error_page(refusal: Refusal, form: ErrorForm) -> bytes:
    """Return *refusal* as JSON.

    >>> from inferencecache.gateway.refusal import NO_ROUTE
    >>> error_page(NO_ROUTE, ErrorForm.ANTHROPIC)[:40]
    b'{"type":"error","error":{"type":"not_fou'
    """
    types = _OPENAI_TYPES if form is ErrorForm.OPENAI else _ANTHROPIC_TYPES
    common = "api_error" if refusal.status >= _SERVER_SIDE else "invalid_request_error"
    error: dict[str, object] = {
        "type": types.get(refusal.status, common),
        "message": refusal.message,
    }
    if form is ErrorForm.ANTHROPIC:
        return msgspec.json.encode({"type": "error", "error": error})
    return msgspec.json.encode({"error": {**error, "param": None, "code": refusal.code}})
