"""Read the body of a probe request, strictly, and write its result.

Rules of this file: any bytes give a :class:`ProbeRequest` or a :class:`ProbeBodyError`, nothing
else. Keys are known, in any case; of duplicates the last counts; nothing follows the value.
"""

import json
from typing import Final, NoReturn

from inferencecache.errors import InvalidRequestError
from inferencecache.service.probe import ProbeRequest, ProbeResult

_MEMBERS: Final = {
    "backend": ("backend", "backend"),
    "backendtype": ("backend_type", "backendType"),
    "model": ("model", "model"),
    "hashscheme": ("hash_scheme", "hashScheme"),
}
"""Key in lower case -> attribute, and the key as it is written."""

_DECODER_SPACE: Final = " \t\n\r"
_SHOWN_MAX: Final = 60


class ProbeBodyError(InvalidRequestError):
    """A probe request is outside the contract; its text is the answer's body.

    Args:
        message: The whole text.
    """

    def __init__(self, message: str) -> None:
        super().__init__(field="body", value="", allowed="a probe request")
        self.message = message

    def __str__(self) -> str:
        return self.message


def decode_probe_request(body: bytes) -> ProbeRequest:
    """Return what *body* asks for.

    Raises:
        ProbeBodyError: The body is outside the contract.

    Complexity: O(bytes).
    """
    members = _members(_parse(body))
    request = ProbeRequest(**members)
    if not (request.backend and request.model and request.hash_scheme):
        raise ProbeBodyError("probe request missing required field (backend, model, hashScheme)")
    return request


def encode_probe_result(result: ProbeResult) -> str:
    """Return *result* as one line of JSON with a newline at its end."""
    document: dict[str, object] = {
        "backend": result.backend,
        "ingest": result.ingest,
        "routing": result.routing,
        "t2": result.t2,
    }
    if result.errors:
        document["errors"] = [
            {"stage": error.stage, "message": error.message} for error in result.errors
        ]
    return json.dumps(document, separators=(",", ":")) + "\n"


def _parse(body: bytes) -> object:
    decoder = json.JSONDecoder(object_pairs_hook=_fold, parse_constant=_refuse_constant)
    try:
        text = body.decode("utf-8").lstrip(_DECODER_SPACE)
        value, end = decoder.raw_decode(text)
    except UnicodeDecodeError as error:
        raise _undecodable("the body is not UTF-8") from error
    except RecursionError as error:
        raise _undecodable("nested too deeply") from error
    except ValueError as error:
        raise _undecodable(str(error)) from error
    if text[end:].strip(_DECODER_SPACE):
        raise ProbeBodyError("probe request body has trailing content after the first JSON value")
    return value


def _fold(pairs: list[tuple[str, object]]) -> dict[str, object]:
    return {key.lower(): value for key, value in pairs}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _members(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _undecodable("expected an object")
    members = {}
    for key, member in value.items():
        if key not in _MEMBERS:
            raise _undecodable(f"unknown field {key[:_SHOWN_MAX]!a}")
        if member is None:
            continue
        attribute, written = _MEMBERS[key]
        if not isinstance(member, str):
            raise _undecodable(f"{written}: expected a text")
        if not member.isascii() and not _is_text(member):
            raise _undecodable(f"{written}: a string holds half of a surrogate pair")
        members[attribute] = member
    return members


def _is_text(member: str) -> bool:
    """Tell whether *member* can be sent as UTF-8."""
    try:
        member.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _undecodable(reason: str) -> ProbeBodyError:
    return ProbeBodyError(f"decode probe request: {reason}")
