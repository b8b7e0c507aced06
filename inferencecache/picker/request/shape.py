"""Which API a body is meant for, told by the keys at its top level."""

import re
from typing import Final

from msgspec import Raw

from inferencecache.picker.request.bad_body import BadBodyError, BodyFlaw
from inferencecache.picker.request.envelope import ABSENT, Envelope
from inferencecache.picker.request.inference_request import Api
from inferencecache.picker.request.telling_words import TOOL_USE

_NULL: Final = b"null"
_TOOL_BLOCK: Final = re.compile(rb'"type"[ \t\n\r]*:[ \t\n\r]*"tool_use"')
"""The word alone may be a name or a whole text; within a text its quotes are escaped."""

_OPENING: Final = re.compile(rb"[ \t\n\r\[]*")


def api_of(envelope: Envelope, *, has_telling_words: bool) -> Api:
    """Return what *envelope* is meant for.

    Args:
        envelope: The body.
        has_telling_words: Whether its messages have any.

    Raises:
        BadBodyError: The key that tells it holds a value of another type.
    """
    if _is_given(envelope.messages):
        _require(envelope.messages, b"[", BodyFlaw.MESSAGES_NOT_A_LIST)
        return (
            Api.ANTHROPIC_MESSAGES
            if _is_anthropic(envelope, has_telling_words)
            else Api.CHAT_COMPLETIONS
        )
    if _is_given(envelope.prompt):
        _require(envelope.prompt, b'["', BodyFlaw.PROMPT_NOT_TEXT_OR_LIST)
        return Api.COMPLETIONS
    if _is_given(envelope.query) and _is_given(envelope.documents):
        return Api.RERANK
    if _is_given(envelope.text_1) and _is_given(envelope.text_2):
        return Api.SCORE
    if _is_given(envelope.input):
        return _api_of_input(envelope)
    if envelope.messages is not ABSENT:
        raise BadBodyError(BodyFlaw.MESSAGES_NOT_A_LIST)
    return Api.UNKNOWN


def _api_of_input(envelope: Envelope) -> Api:
    _require(envelope.input, b'["{', BodyFlaw.INPUT_NOT_TEXT_OR_LIST)
    responses = (
        envelope.instructions,
        envelope.max_output_tokens,
        envelope.tools,
        envelope.previous_response_id,
        envelope.conversation,
        envelope.reasoning,
        envelope.text,
        envelope.store,
    )
    if any(map(_is_given, responses)):
        return Api.RESPONSES
    if _is_given(envelope.encoding_format) or _is_given(envelope.dimensions):
        return Api.EMBEDDINGS
    if not _begins_with(envelope.input, b"["):
        return Api.AMBIGUOUS_INPUT
    first = _first_within(envelope.input)
    if first in b'"0123456789':
        return Api.EMBEDDINGS
    return Api.RESPONSES if first == b"{" else Api.AMBIGUOUS_INPUT


def _is_anthropic(envelope: Envelope, has_telling_words: bool) -> bool:  # noqa: FBT001 - one fact
    signs = (envelope.system, envelope.stop_sequences, envelope.anthropic_version)
    if any(map(_is_given, signs)):
        return True
    if not has_telling_words:
        return False
    messages = bytes(envelope.messages)
    return TOOL_USE in messages and _TOOL_BLOCK.search(messages) is not None


def _is_given(raw: Raw) -> bool:
    return raw is not ABSENT and bytes(memoryview(raw)[: len(_NULL)]) != _NULL


def _first_within(raw: Raw) -> bytes:
    """Return the first byte of a list that opens no list, however it is laid out."""
    view = memoryview(raw)
    opening = _OPENING.match(view)
    behind = 0 if opening is None else opening.end()
    return bytes(view[behind : behind + 1])


def _begins_with(raw: Raw, first_bytes: bytes) -> bool:
    return memoryview(raw)[0] in first_bytes


def _require(raw: Raw, first_bytes: bytes, flaw: BodyFlaw) -> None:
    if not _begins_with(raw, first_bytes):
        raise BadBodyError(flaw)
