"""What a simulated engine says over its OpenAI-shaped paths, as bytes.

An answer says in words what the engine did, so that whoever sends a prompt with curl sees it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from inferencecache.simulation.byte_tokenizer import encode
from inferencecache.simulation.openai_request import Asked

DONE: Final = b"data: [DONE]\n\n"
"""The end of a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a request took.

    Attributes:
        prompt_tokens: Tokens of the prompt.
        cached_tokens: Those of them that were cached.
        completion_tokens: Tokens of the answer.
    """

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int

    @property
    def shown(self) -> dict[str, Any]:
        """The counts under their names in an answer."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer before it is written down.

    Attributes:
        name: Its id.
        created_s: Unix time.
        model: Who answers.
        pieces: Its text, piece by piece.
        is_cut: Whether there would have been more.
        is_chat: Whether it is a message, not a text.
        usage: What it took.
    """

    name: str
    created_s: int
    model: str
    pieces: Sequence[str]
    is_cut: bool
    is_chat: bool
    usage: Usage

    @property
    def whole(self) -> bytes:
        """The answer in one document."""
        text = "".join(self.pieces)
        said: dict[str, Any] = {"text": text}
        if self.is_chat:
            said = {"message": {"role": "assistant", "content": text}}
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": self._why_ended}
        kind = "chat.completion" if self.is_chat else "text_completion"
        return msgspec.json.encode(self._document(kind, [choice]) | {"usage": self.usage.shown})

    def events(self, *, has_usage: bool) -> Iterator[bytes]:
        """Yield the answer as server-sent events, one per piece, without the end of the stream.

        Args:
            has_usage: Whether one more event counts the tokens.
        """
        for number, piece in enumerate(self.pieces):
            yield self._event([self._delta(piece, is_first=number == 0)])
        last = self._delta("", is_first=False) | {"finish_reason": self._why_ended}
        yield self._event([last])
        if has_usage:
            yield self._event([], {"usage": self.usage.shown})

    @property
    def _why_ended(self) -> str:
        return "length" if self.is_cut else "stop"

    def _delta(self, piece: str, *, is_first: bool) -> dict[str, Any]:
        said: dict[str, Any] = {"text": piece}
        if self.is_chat:
            role = {"role": "assistant"} if is_first else {}
            said = {"delta": role | ({"content": piece} if piece else {})}
        return {"index": 0, **said, "logprobs": None, "finish_reason": None}

    def _event(self, choices: list[dict[str, Any]], more: dict[str, Any] | None = None) -> bytes:
        kind = "chat.completion.chunk" if self.is_chat else "text_completion"
        document = self._document(kind, choices) | (more or {})
        return b"data: " + msgspec.json.encode(document) + b"\n\n"

    def _document(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.name,
            "object": kind,
            "created": self.created_s,
            "model": self.model,
            "choices": choices,
        }


def said_of(asked: Asked, text: str) -> tuple[list[str], bool]:
    """Return *text* in words, as far as *asked* lets it go, and whether it was cut."""
    left = asked.output_tokens
    pieces: list[str] = []
    for word in text.split(" "):
        piece = word if not pieces else f" {word}"
        pieces.append(piece[:left])
        left -= len(encode(piece))
        if left <= 0:
            break
    return pieces, sum(map(len, pieces)) < len(text)


def models_page(models: Sequence[str], created_s: int, window_tokens: int) -> bytes:
    """Return what ``/v1/models`` says."""
    rows = [
        {
            "id": model,
            "object": "model",
            "created": created_s,
            "owned_by": "inferencecache",
            "max_model_len": window_tokens,
        }
        for model in models
    ]
    return msgspec.json.encode({"object": "list", "data": rows})


def tokens_page(tokens: Sequence[int], window_tokens: int) -> bytes:
    """Return what ``/tokenize`` says."""
    return msgspec.json.encode(
        {"count": len(tokens), "max_model_len": window_tokens, "tokens": tokens}
    )


def error_page(status: int, kind: str, text: str) -> bytes:
    """Return an error as clients of OpenAI expect it.

    Args:
        status: Of the HTTP answer.
        kind: What kind it is, such as ``NotFoundError``.
        text: What is wrong, for people.
    """
    error = {"message": text, "type": kind, "param": None, "code": status}
    return msgspec.json.encode({"error": error})
