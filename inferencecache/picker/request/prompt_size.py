"""How long a prompt is, without reading it.

Rules of this file: token ids are counted, however engines may have them written, fractions and
texts among them included; of texts only the length is taken, about as long as they are in UTF-8.
Of several prompts the longest counts, since a context window holds one at a time. Pictures and
sound are no text and count nothing.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from inferencecache.picker.request.envelope import ABSENT, Envelope
from inferencecache.picker.request.inference_request import Api
from inferencecache.picker.request.media import media_bytes, media_most, urls_most
from inferencecache.picker.request.written_length import unescaped_length

_PARTS_MAX: Final = 4_096
"""Lists with more prompts than this are not taken apart; their size is not known then."""

_MEDIA_MAX: Final = 4_096
"""More pictures than this are no pictures; the size of the prompt is not known then."""

_BLANKS: Final = b" \t\n\r"
_TEXT_LIST_OBJECT: Final = b'"[{'
_BACKSLASH: Final = b"\\"
_INNER_LIST: Final = re.compile(rb"(?<!\A)\[[^\[\]]*\]")
_STARTS_WITH_AN_ID: Final = re.compile(rb'\[[ \t\n\r]*[^ \t\n\r"\[{\]]')


class PromptSize(NamedTuple):
    """The length of a prompt.

    Attributes:
        text_bytes: Of texts, about as long as they are in UTF-8; None if it is not known.
        tokens: Of token ids; None if there are none.
        is_of_several: Whether there are other prompts beside it.
    """

    text_bytes: int | None = None
    tokens: int | None = None
    is_of_several: bool = False


def prompt_size(envelope: Envelope, api: Api, *, has_telling_words: bool) -> PromptSize:
    """Return how long the longest prompt of *envelope* is.

    Args:
        envelope: The body.
        api: What it is meant for.
        has_telling_words: Whether its messages have any.

    Complexity: O(length of the prompt), at the speed of memory.
    """
    if api in _CONVERSATIONS:
        return _of_conversation(envelope, has_telling_words=has_telling_words)
    return _SIZES[api](envelope)


def _of_prompts(raw: Raw) -> PromptSize:
    """Return the size of the longest prompt in *raw*: a text, or a list of texts, ids or lists."""
    view = memoryview(raw)
    if bytes(view[:1]) != b"[":
        return PromptSize(text_bytes=unescaped_length(bytes(view)))
    prompts = bytes(view)
    if b'"' not in prompts and b"{" not in prompts:
        return _of_token_ids(prompts)
    if _STARTS_WITH_AN_ID.match(prompts):
        return PromptSize(tokens=prompts.count(b",") + 1)
    if _has_many_parts(prompts):
        return PromptSize(is_of_several=True)
    return _of_parts([bytes(part) for part in msgspec.json.decode(prompts, type=list[Raw])])


def _has_many_parts(prompts: bytes) -> bool:
    """Return whether a list holds more texts, lists and numbers than are taken apart."""
    if _BACKSLASH in prompts:
        prompts = prompts.replace(_BACKSLASH * 2, b"").replace(_BACKSLASH + b'"', b"")
    if prompts.count(b'"') > 2 * _PARTS_MAX:
        return True
    around_texts = b"".join(prompts.split(b'"')[::2])
    if around_texts.count(b"[") > _PARTS_MAX:
        return True
    return _INNER_LIST.sub(b"", around_texts).count(b",") >= _PARTS_MAX


def _of_parts(parts: list[bytes]) -> PromptSize:
    """Return the size of the longest of *parts*; a list in a list can only be one of token ids."""
    if any(part[0] not in _TEXT_LIST_OBJECT for part in parts):
        return PromptSize(tokens=len(parts))
    counts = [part.count(b",") + 1 for part in parts if part[:1] == b"["]
    texts = [unescaped_length(part) for part in parts if part[:1] != b"["]
    return PromptSize(max(texts, default=None), max(counts, default=None), len(parts) > 1)


def _of_token_ids(prompts: bytes) -> PromptSize:
    ends = prompts.count(b"]")
    if ends > _PARTS_MAX:
        return PromptSize(is_of_several=True)
    lists = (part.strip(b"," + b"[" + _BLANKS) for part in prompts.split(b"]"))
    tokens = max(part.count(b",") + 1 if part else 0 for part in lists)
    return PromptSize(tokens=tokens, is_of_several=ends > len("]]"))


def _together(text: Raw, others: PromptSize) -> PromptSize:
    if others.text_bytes is None:
        return PromptSize()
    return PromptSize(text_bytes=unescaped_length(bytes(text)) + others.text_bytes)


def _of_conversation(envelope: Envelope, *, has_telling_words: bool) -> PromptSize:
    """Return the size of everything that becomes the prompt of a chat."""
    parts = (envelope.system, envelope.instructions, envelope.input)
    others = [bytes(part) for part in parts if part is not ABSENT]
    messages = bytes(envelope.messages)
    media = media_most(messages) if has_telling_words else urls_most(messages)
    media += sum(map(media_most, others))
    if media > _MEDIA_MAX:
        return PromptSize()
    texts = [messages, *others]
    text_bytes = sum(map(unescaped_length, [*texts, bytes(envelope.tools)]))
    if media:
        text_bytes = max(text_bytes - sum(map(media_bytes, texts)), 0)
    return PromptSize(text_bytes=text_bytes)


_CONVERSATIONS: Final = frozenset({Api.CHAT_COMPLETIONS, Api.ANTHROPIC_MESSAGES, Api.RESPONSES})
_SIZES: Final[Mapping[Api, Callable[[Envelope], PromptSize]]] = {
    Api.COMPLETIONS: lambda envelope: _of_prompts(envelope.prompt),
    Api.EMBEDDINGS: lambda envelope: _of_prompts(envelope.input),
    Api.AMBIGUOUS_INPUT: lambda envelope: _of_prompts(envelope.input),
    Api.RERANK: lambda envelope: _together(envelope.query, _of_prompts(envelope.documents)),
    Api.SCORE: lambda envelope: _together(envelope.text_1, _of_prompts(envelope.text_2)),
    Api.UNKNOWN: lambda _: PromptSize(),
}
