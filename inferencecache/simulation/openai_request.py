"""What an OpenAI-shaped request asks a simulated engine for.

Fields that change nothing here are let through unread, as engines do with most of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

import msgspec

from inferencecache.errors import InvalidRequestError
from inferencecache.simulation.byte_tokenizer import ChatMessage, chat_text, encode

ANSWER_TOKENS: Final = 256
"""Longest answer where a request does not say."""

_Tokens = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
_Token = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]


class _Part(msgspec.Struct):
    type: str = "text"
    text: str = ""


class _Message(msgspec.Struct):
    role: str
    content: str | list[_Part] | None = None

    @property
    def said(self) -> ChatMessage:
        """What is said, without its pictures."""
        content = self.content or ""
        if not isinstance(content, str):
            content = "".join(part.text for part in content)
        return ChatMessage(self.role, content)


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class _Options(msgspec.Struct, kw_only=True):
    model: str = ""
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    max_tokens: _Tokens | None = None
    cache_salt: str | None = None


class _Chat(_Options, kw_only=True):
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    max_completion_tokens: _Tokens | None = None


class _Completion(_Options, kw_only=True):
    prompt: str | Annotated[list[_Token], msgspec.Meta(min_length=1)]


class _Tokenize(msgspec.Struct, kw_only=True):
    messages: list[_Message] | None = None
    prompt: str | None = None
    add_generation_prompt: bool = True


_Body = TypeVar("_Body", _Chat, _Completion, _Tokenize)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for.

    Attributes:
        model: By the name that the request has for it.
        tokens: The prompt.
        is_chat: Whether the answer is a message, not a text.
        is_streamed: Whether it comes in pieces.
        has_usage: Whether the last of them counts tokens.
        output_tokens: Longest answer.
        salt: What keeps the prompt apart from equal ones, or empty.
    """

    model: str
    tokens: Sequence[int]
    is_chat: bool
    is_streamed: bool = False
    has_usage: bool = False
    output_tokens: int = ANSWER_TOKENS
    salt: str = ""


def asked_chat(body: bytes) -> Asked:
    """Read a body of ``/v1/chat/completions``.

    Raises:
        InvalidRequestError: It is none.
    """
    chat = _read(body, _Chat)
    most = chat.max_completion_tokens or chat.max_tokens
    text = chat_text([message.said for message in chat.messages])
    return _asked(chat, encode(text), most, is_chat=True)


def asked_completion(body: bytes) -> Asked:
    """Read a body of ``/v1/completions``.

    Raises:
        InvalidRequestError: It is none.
    """
    completion = _read(body, _Completion)
    prompt = completion.prompt
    tokens = encode(prompt) if isinstance(prompt, str) else prompt
    return _asked(completion, tokens, completion.max_tokens, is_chat=False)


def tokenized(body: bytes) -> list[int]:
    """Return the tokens that a body of ``/tokenize`` asks for.

    Raises:
        InvalidRequestError: It is none.
    """
    asked = _read(body, _Tokenize)
    if asked.messages is not None:
        said = [message.said for message in asked.messages]
        return encode(chat_text(said, awaits_answer=asked.add_generation_prompt))
    if asked.prompt is None:
        raise InvalidRequestError(field="prompt", value=None, allowed="a text, or messages")
    return encode(asked.prompt)


def _read(body: bytes, kind: type[_Body]) -> _Body:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(
            field="body", value=f"{len(body)} bytes", allowed=f"a request of this path ({error})"
        ) from error


def _asked(options: _Options, tokens: Sequence[int], most: int | None, *, is_chat: bool) -> Asked:
    if not tokens:
        raise InvalidRequestError(field="prompt", value="", allowed="at least one token")
    stream_options = options.stream_options
    return Asked(
        model=options.model,
        tokens=tokens,
        is_chat=is_chat,
        is_streamed=bool(options.stream),
        has_usage=stream_options is not None and stream_options.include_usage,
        output_tokens=most or ANSWER_TOKENS,
        salt=options.cache_salt or "",
    )
