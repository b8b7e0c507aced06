"""What of a body can change its prompt, each value still as bytes.

Rules of this file: what stands here is all that goes into the digest of a prompt, so a new key that
changes tokens belongs here and nowhere else.
"""

import codecs
from typing import Final

import msgspec
from msgspec import Raw

from inferencecache.picker.prompt.many_values import QUICK_BYTES
from inferencecache.picker.request.envelope import ABSENT, read_value, without_half_pairs


class PromptKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a body that make its prompt; one that is missing is empty.

    Turns are taken apart where they are a list, in bodies so long that what they begin with is
    worth looking for. In very long ones they are not: a turn costs 50 bytes and 50 nanoseconds, and
    there may be one for every second byte.
    """

    messages: list[Raw] | Raw = ABSENT
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


class PromptBody(msgspec.Struct, frozen=True):
    """A body as far as its prompt goes.

    Attributes:
        keys: Its values as they are written.
        parts: Those that are there and in one piece, each after its place among
            :class:`PromptKeys`.
        length: Bytes of the whole body.
    """

    keys: PromptKeys
    parts: tuple[tuple[int, Raw], ...]
    length: int

    @property
    def turns(self) -> list[Raw]:
        """Its messages, where they were taken apart."""
        return self.keys.messages if isinstance(self.keys.messages, list) else []

    @property
    def salt(self) -> bytes:
        """What keeps the request out of a shared cache, as it is written; empty for nothing."""
        salt, further = self.keys.cache_salt, self.keys.extra_key
        if salt is ABSENT and further is ABSENT:
            return b""
        salts = [b"" if bytes(raw) in _EMPTY else bytes(raw) for raw in (salt, further)]
        return b"\n".join(salts) if any(salts) else b""


class _KeysWithTurns(PromptKeys, frozen=True, kw_only=True):
    messages: list[Raw] = ABSENT  # type: ignore[assignment] # absent ones are no list


class _KeysInOnePiece(PromptKeys, frozen=True, kw_only=True):
    messages: Raw = ABSENT


_LONG_BYTES: Final = 16_384
"""Shorter conversations take less time to write than to look for."""

_WITH_TURNS: Final = msgspec.json.Decoder(_KeysWithTurns)
_IN_ONE_PIECE: Final = msgspec.json.Decoder(_KeysInOnePiece)
_EMPTY: Final = frozenset({b"", b"null", b'""'})


def read_prompt_body(data: bytes) -> PromptBody | None:
    """Return what *data*, a body that was parsed before, says of its prompt; None for nothing.

    Complexity: O(n) at the speed of memory; no value is built.
    """
    text = data.removeprefix(codecs.BOM_UTF8)
    keys = _decode(text)
    if keys is None and (harmless := without_half_pairs(text)) != text:
        keys = _decode(harmless)
    if keys is None:
        return None
    places = enumerate(msgspec.structs.astuple(keys))
    parts = tuple((place, raw) for place, raw in places if raw is not ABSENT and type(raw) is Raw)
    return PromptBody(keys, parts, len(text))


def is_given(raw: Raw) -> bool:
    """Return whether *raw* is there and not null."""
    return raw is not ABSENT and bytes(memoryview(raw)[:4]) != b"null"


def is_true(raw: Raw, default: bool) -> bool:  # noqa: FBT001 - the default of a switch
    """Return *raw* as a switch."""
    said = None if raw is ABSENT else read_value(raw, bool)
    return default if said is None else said


def _decode(text: bytes) -> PromptKeys | None:
    try:
        if _LONG_BYTES <= len(text) <= QUICK_BYTES:
            return _WITH_TURNS.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # messages may be a text, or null
        pass
    try:
        return _IN_ONE_PIECE.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
