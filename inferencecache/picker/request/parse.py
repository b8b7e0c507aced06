"""From the bytes of a body to what routing needs of it."""

import codecs
import re
from typing import Final, NamedTuple

import msgspec

from inferencecache.picker.bodies import Span
from inferencecache.picker.request.bad_body import BadBodyError, BodyFlaw
from inferencecache.picker.request.envelope import (
    ABSENT,
    Envelope,
    TopLevel,
    read_top_level,
    read_value,
)
from inferencecache.picker.request.inference_request import (
    NO_AFFINITY,
    Affinity,
    Api,
    InferenceRequest,
)
from inferencecache.picker.request.model_spans import model_spans, place_of
from inferencecache.picker.request.prompt_size import prompt_size
from inferencecache.picker.request.shape import api_of
from inferencecache.picker.request.structure import (
    holds_few_brackets,
    is_deeper_than,
    is_utf8,
    long_number,
    nests_little,
)
from inferencecache.picker.request.telling_words import has_telling_words
from inferencecache.picker.request.turns import further_objects
from inferencecache.picker.request.whole_number import whole_number
from inferencecache.settings.picker import PickerParseSettings

_AFFINITY_BYTES_MAX: Final = 1_024
_LONG_BYTES: Final = 32_768
_LEVELS_OF_TURNS: Final = 2
"""They stand in a list that stands in an object."""

_LEFT_OUT: Final = b"[]"
"""Stands for a list of turns."""

_BETWEEN_TURNS: Final = b","

_NESTED: Final = frozenset({b"[", b"{", b'"'})
_NULL: Final = b"null"
_TEXT_OR_NULL: Final = msgspec.json.Decoder(str | None)
_EMPTY_OBJECT: Final = re.compile(rb"\s*\{\s*\}")


class ParsedBody(NamedTuple):
    """What was read.

    Attributes:
        request: What the body says; nothing in it belongs to the body.
        top_level: Its values as they are written, which keep all of its bytes; None where they
            are elsewhere.
    """

    request: InferenceRequest
    top_level: TopLevel | None


def parse_body(
    data: bytes,
    settings: PickerParseSettings,
    keys_max: int | None = None,
    *,
    may_lack_model: bool = False,
) -> InferenceRequest:
    """Return what a body says; see :func:`read_body`."""
    return read_body(data, settings, keys_max, may_lack_model=may_lack_model).request


def read_body(
    data: bytes,
    settings: PickerParseSettings,
    keys_max: int | None = None,
    *,
    may_lack_model: bool = False,
) -> ParsedBody:
    """Read a body.

    Args:
        data: All of it; a byte order mark in front is allowed.
        settings: What is too deep or too long.
        keys_max: Most ``model`` keys at any depth that may be looked at, None for any number.
        may_lack_model: Whether a body may name no model, null, or an empty one.

    Returns:
        What it says; spans count from the first byte of *data*.

    Raises:
        BadBodyError: It is no inference request.
        LaboriousBodyError: There are more keys than may be looked at.
    """
    mark = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    text = data[mark:] if mark else data
    _check_text(text)
    top_level = _top_level(text, settings.depth_max)
    envelope = top_level.keys
    _check_numbers(text, settings)
    spans = [] if envelope.model is ABSENT else _model_spans(text, top_level, keys_max)
    names: tuple[str, ...] = ()
    if any(_written(text, span) != _NULL for span in spans):
        names = tuple(_model_name(text, span, settings) for span in spans)
    elif not may_lack_model or _EMPTY_OBJECT.match(text):
        raise BadBodyError(BodyFlaw.MODEL_MISSING)
    if names and not names[-1] and not may_lack_model:
        raise BadBodyError(BodyFlaw.MODEL_EMPTY, spans[-1].start)
    is_telling = has_telling_words(envelope.messages, top_level.turns)
    api = _allowed_api(envelope, settings, is_telling=is_telling)
    size = prompt_size(envelope, api, has_telling_words=is_telling)
    request = InferenceRequest(
        api=api,
        model=names[-1] if names else "",
        model_names=names,
        model_spans=_shifted(spans or [_gap(text)], mark),
        is_stream=read_value(envelope.stream, bool) or False,
        output_tokens_max=_output_tokens_max(envelope),
        affinity=_affinity(envelope),
        prompt_bytes=size.text_bytes,
        prompt_tokens=size.tokens,
        has_several_prompts=size.is_of_several,
    )
    return ParsedBody(request, top_level)


def _check_text(text: bytes) -> None:
    if not text:
        raise BadBodyError(BodyFlaw.EMPTY)
    if not is_utf8(text):
        raise BadBodyError(BodyFlaw.NOT_UTF8)


def _top_level(text: bytes, depth_max: int) -> TopLevel:
    """Read the top level, unless there are too many; of what is also malformed that is said.

    The decoder goes first, since the levels of valid JSON are counted faster. It gives up at the
    depth of the interpreter's stack.
    """
    try:
        top_level = read_top_level(text)
    except (BadBodyError, RecursionError):
        if is_deeper_than(text, depth_max, is_json=False):
            raise BadBodyError(BodyFlaw.TOO_DEEP) from None
        raise
    if _is_too_deep(text, top_level, depth_max):
        raise BadBodyError(BodyFlaw.TOO_DEEP)
    return top_level


def _is_too_deep(text: bytes, top_level: TopLevel, depth_max: int) -> bool:
    """Return whether a body nests too deep; only turns that could are looked at closely.

    Texts hold brackets, too, but hardly any turn so many that it could nest too deep by them. Those
    that do are looked at in one go: one beside the other they nest no deeper.
    """
    _, turns, place, _ = top_level
    if place is None:
        return not nests_little(text, depth_max) and is_deeper_than(text, depth_max)
    if holds_few_brackets(text, depth_max, further_objects(turns)):
        return False
    around = text[: place.start] + _LEFT_OUT + text[place.end :]
    if is_deeper_than(around, depth_max):
        return True
    left = depth_max - _LEVELS_OF_TURNS
    suspects = [turn for turn in map(bytes, turns) if turn.count(b"{") + turn.count(b"[") > left]
    return is_deeper_than(_BETWEEN_TURNS.join(suspects), left)


def _check_numbers(text: bytes, settings: PickerParseSettings) -> None:
    at_byte = long_number(text, settings.digits_max)
    if at_byte is not None:
        raise BadBodyError(BodyFlaw.NUMBER_TOO_LONG, at_byte)


def _model_spans(text: bytes, top_level: TopLevel, keys_max: int | None) -> list[Span]:
    """Return where the models stand; a long prompt is not looked through."""
    envelope, _, place, _ = top_level
    if place is not None:
        return model_spans(text, keys_max, place)
    for name, value in (
        (b'"messages"', envelope.messages),
        (b'"prompt"', envelope.prompt),
        (b'"input"', envelope.input),
    ):
        if memoryview(value).nbytes > _LONG_BYTES and bytes(memoryview(value)[:1]) in _NESTED:
            return model_spans(text, keys_max, place_of(text, name, value))
    return model_spans(text, keys_max)


def _written(text: bytes, span: Span) -> bytes:
    return text[span.start : span.end]


def _model_name(text: bytes, span: Span, settings: PickerParseSettings) -> str:
    """Return a model's name; null is an empty one."""
    try:
        name = _TEXT_OR_NULL.decode(_written(text, span)) or ""
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadBodyError(BodyFlaw.MODEL_NOT_TEXT, span.start) from None
    if len(name.encode()) > settings.model_bytes_max:
        raise BadBodyError(BodyFlaw.MODEL_TOO_LONG, span.start)
    return name


def _shifted(spans: list[Span], bytes_before: int) -> tuple[Span, ...]:
    if not bytes_before:
        return tuple(spans)
    return tuple(Span(start + bytes_before, end + bytes_before) for start, end in spans)


def _gap(text: bytes) -> Span:
    """Return the empty span behind the first bracket, where a member can be put."""
    behind = text.index(b"{") + 1
    return Span(behind, behind)


def _allowed_api(envelope: Envelope, settings: PickerParseSettings, *, is_telling: bool) -> Api:
    api = api_of(envelope, has_telling_words=is_telling)
    if api is Api.UNKNOWN and not settings.allow_unknown_shape:
        raise BadBodyError(BodyFlaw.UNKNOWN_SHAPE)
    return api


def _output_tokens_max(envelope: Envelope) -> int | None:
    """Return the largest limit that is given: engines differ in which of them they go by."""
    limits = [
        limit
        for raw in (envelope.max_completion_tokens, envelope.max_output_tokens, envelope.max_tokens)
        if raw is not ABSENT and (limit := whole_number(raw)) is not None and limit > 0
    ]
    return max(limits, default=None)


def _affinity(envelope: Envelope) -> Affinity:
    if (
        envelope.prompt_cache_key
        is envelope.user
        is envelope.safety_identifier
        is envelope.session_id
        is envelope.conversation
        is envelope.previous_response_id
        is envelope.cache_salt
        is ABSENT
    ):
        return NO_AFFINITY
    return Affinity(
        prompt_cache_key=_short_text(envelope.prompt_cache_key),
        user=_short_text(envelope.user),
        safety_identifier=_short_text(envelope.safety_identifier),
        session_id=_short_text(envelope.session_id),
        conversation=_conversation(envelope.conversation),
        previous_response_id=_short_text(envelope.previous_response_id),
        cache_salt=_short_text(envelope.cache_salt),
    )


def _short_text(raw: msgspec.Raw) -> str:
    """Return a text, or nothing where there is none or it is too long to be an identifier."""
    if raw is ABSENT or memoryview(raw).nbytes > _AFFINITY_BYTES_MAX:
        return ""
    return read_value(raw, str) or ""


class _Conversation(msgspec.Struct):
    id: str


def _conversation(raw: msgspec.Raw) -> str:
    if raw is ABSENT or memoryview(raw).nbytes > _AFFINITY_BYTES_MAX:
        return ""
    conversation = read_value(raw, _Conversation)
    return conversation.id if conversation is not None else _short_text(raw)
