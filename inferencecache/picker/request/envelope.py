"""The top level of a body, each value still as bytes.

The decoder validates the whole document and builds nothing of it: a value that nobody reads costs
no object, so that no body can take many times its own size. It goes through a body once, for
routing and for whoever reads the prompt.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from inferencecache.picker.bodies import Span
from inferencecache.picker.request.bad_body import BadBodyError, BodyFlaw
from inferencecache.picker.request.turns import place_of_turns

ValueT = TypeVar("ValueT")

ABSENT: Final = Raw(b"")


class PromptKeys(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """The keys of a body that make its prompt; one that is missing is :data:`ABSENT`.

    What stands here is all that goes into the digest of a prompt, so a new key that changes tokens
    belongs here and nowhere else.
    """

    messages: Raw = ABSENT
    prompt: Raw = ABSENT
    input: Raw = ABSENT
    system: Raw = ABSENT
    instructions: Raw = ABSENT
    tools: Raw = ABSENT
    tool_choice: Raw = ABSENT
    documents: Raw = ABSENT
    reasoning_effort: Raw = ABSENT
    chat_template: Raw = ABSENT
    chat_template_kwargs: Raw = ABSENT
    add_generation_prompt: Raw = ABSENT
    continue_final_message: Raw = ABSENT
    add_special_tokens: Raw = ABSENT
    truncate_prompt_tokens: Raw = ABSENT
    prompt_logprobs: Raw = ABSENT
    echo: Raw = ABSENT
    logprobs: Raw = ABSENT
    previous_response_id: Raw = ABSENT
    conversation: Raw = ABSENT
    cache_salt: Raw = ABSENT
    extra_key: Raw = ABSENT


class Envelope(PromptKeys, frozen=True, kw_only=True):
    """These and the keys that only routing may care about."""

    model: Raw = ABSENT
    query: Raw = ABSENT
    text_1: Raw = ABSENT
    text_2: Raw = ABSENT
    stop_sequences: Raw = ABSENT
    anthropic_version: Raw = ABSENT
    max_output_tokens: Raw = ABSENT
    max_completion_tokens: Raw = ABSENT
    max_tokens: Raw = ABSENT
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


class TopLevel(NamedTuple):
    """A body as far as it was taken apart.

    Attributes:
        keys: Its values as they are written.
        turns: Its messages one by one; none where they are no list, and in bodies so short that
            what they begin with is not worth looking for. There are none either where they could
            be too many: a turn costs 50 bytes and half a microsecond, and there may be one for
            every second byte.
        place: Where the messages stand; None if that is not known.
        length: Bytes of the whole body, without its byte order mark.
    """

    keys: Envelope
    turns: Sequence[Raw]
    place: Span | None
    length: int


class _EnvelopeWithTurns(Envelope, frozen=True, kw_only=True):
    messages: list[Raw] = ABSENT  # type: ignore[assignment] # absent ones are no list


_READERS: Final[dict[object, msgspec.json.Decoder[Any]]] = {}
"""By what they read: as many as kinds that the code asks for."""

_LONG_BYTES: Final = 16_384
"""Shorter conversations take less time to write than to look for."""

_VERY_LONG_BYTES: Final = 1_048_576
_TURN_BYTES_MIN: Final = 64
"""Of a body per turn; fewer hold little to read in a conversation, but a great many objects."""

_DECODER: Final = msgspec.json.Decoder(Envelope)
_WITH_TURNS: Final = msgspec.json.Decoder(_EnvelopeWithTurns)
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATES_LOOKED_AT: Final = 50_000
_AT_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_SPACE: Final = b" \t\n\r"


def read_top_level(data: bytes) -> TopLevel:
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
        return _top_level(data)
    except BadBodyError:
        harmless = without_half_pairs(data)
        if harmless == data:
            raise
        return _top_level(harmless)


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


def _top_level(data: bytes) -> TopLevel:
    if not _LONG_BYTES <= len(data) <= _VERY_LONG_BYTES:
        return TopLevel(_decode(data), (), None, len(data))
    try:
        keys = _WITH_TURNS.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # messages may be a text, or null
        return TopLevel(_decode(data), (), None, len(data))
    turns = keys.messages
    if isinstance(turns, Raw):  # there are none
        return TopLevel(keys, (), None, len(data))
    if len(turns) * _TURN_BYTES_MIN > len(data):
        return TopLevel(_decode(data), (), None, len(data))
    place = place_of_turns(data, turns)
    if place is None:
        return TopLevel(_decode(data), turns, None, len(data))
    written = Raw(memoryview(data)[place.start : place.end])
    msgspec.structs.force_setattr(keys, "messages", written)
    return TopLevel(keys, turns, place, len(data))


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
