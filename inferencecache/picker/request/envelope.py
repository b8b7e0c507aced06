"""The top level of a body, each value still as bytes.

The decoder validates the whole document and builds nothing of it: a value that nobody reads costs
no object, so that no body can take many times its own size.
"""

import re
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from inferencecache.picker.request.bad_body import BadBodyError, BodyFlaw

ValueT = TypeVar("ValueT")

ABSENT: Final = Raw(b"")


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that routing may care about; one that is missing is :data:`ABSENT`."""

    model: Raw = ABSENT
    messages: Raw = ABSENT
    prompt: Raw = ABSENT
    input: Raw = ABSENT
    query: Raw = ABSENT
    documents: Raw = ABSENT
    text_1: Raw = ABSENT
    text_2: Raw = ABSENT
    system: Raw = ABSENT
    stop_sequences: Raw = ABSENT
    anthropic_version: Raw = ABSENT
    instructions: Raw = ABSENT
    max_output_tokens: Raw = ABSENT
    max_completion_tokens: Raw = ABSENT
    max_tokens: Raw = ABSENT
    tools: Raw = ABSENT
    previous_response_id: Raw = ABSENT
    conversation: Raw = ABSENT
    reasoning: Raw = ABSENT
    text: Raw = ABSENT
    store: Raw = ABSENT
    encoding_format: Raw = ABSENT
    dimensions: Raw = ABSENT
    stream: Raw = ABSENT
    prompt_cache_key: Raw = ABSENT
    user: Raw = ABSENT
    safety_identifier: Raw = ABSENT
    session_id: Raw = ABSENT
    cache_salt: Raw = ABSENT


_READERS: Final[dict[object, msgspec.json.Decoder[Any]]] = {}
"""By what they read: as many as kinds that the code asks for."""

_DECODER: Final = msgspec.json.Decoder(Envelope)
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATES_LOOKED_AT: Final = 50_000
_AT_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_SPACE: Final = b" \t\n\r"


def read_envelope(data: bytes) -> Envelope:
    """Return the top level of *data*.

    Half a surrogate pair is no text, but browsers send it where they have cut one in two, and JSON
    allows it; a copy with something harmless of the same length in its place is read instead.

    Raises:
        BadBodyError: *data* is not one JSON object.
    """
    if not data.lstrip(_SPACE).startswith(b"{"):
        _check_whole(data)
        raise BadBodyError(BodyFlaw.NOT_AN_OBJECT)
    try:
        return _decode(data)
    except BadBodyError:
        harmless = without_half_pairs(data)
        if harmless == data:
            raise
        return _decode(harmless)


def without_half_pairs(data: bytes) -> bytes:
    """Return *data* with something harmless of the same length in place of surrogates.

    Of a great many, none is looked at closely: that would hold up others for half a second. The
    letters next to them, Korean ones, go with them then.
    """
    if data.count(rb"\ud") + data.count(rb"\uD") <= _SURROGATES_LOOKED_AT:
        return _SURROGATE.sub(rb"\\u26", data)
    return data.replace(rb"\ud", rb"\u2").replace(rb"\uD", rb"\u2")


def read_float(written: str) -> float:
    """Return the number that *written* is, as engines read it: too large a one is infinite.

    For ``float_hook``. The decoder's own way takes 20 microseconds for a number above 1e284, and a
    document full of them would hold the interpreter for seconds; this lets others run in between.
    """
    return float(written)


def read_value(raw: Raw, kind: type[ValueT]) -> ValueT | None:
    """Return *raw* as *kind*, or None where it is something else or absent."""
    if raw is ABSENT:
        return None
    reader = _READERS.get(kind)
    if reader is None:
        reader = _READERS[kind] = msgspec.json.Decoder(kind, float_hook=read_float)
    try:
        value: ValueT = reader.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return value


def _decode(data: bytes) -> Envelope:
    try:
        return _DECODER.decode(data)
    except msgspec.DecodeError as error:
        raise BadBodyError(BodyFlaw.MALFORMED, _position(error)) from None


def _check_whole(data: bytes) -> None:
    try:
        msgspec.json.decode(data, type=Raw)
    except msgspec.DecodeError as error:
        raise BadBodyError(BodyFlaw.MALFORMED, _position(error)) from None


def _position(error: msgspec.DecodeError) -> int | None:
    match = _AT_BYTE.search(str(error))
    return int(match[1]) if match else None
