"""The OpenAI-shaped paths of something that pretends to be a model."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.errors import InvalidRequestError
from inferencecache.simulation.byte_tokenizer import encode
from inferencecache.simulation.openai_answer import (
    Answer,
    Usage,
    error_page,
    models_page,
    said_of,
    tokens_page,
)
from inferencecache.simulation.openai_request import (
    Asked,
    asked_chat,
    asked_completion,
    tokenized,
)
from inferencecache.transport.openai_listener import (
    OpenAiCall,
    OpenAiEvents,
    OpenAiPages,
    OpenAiReply,
)


class WorkInHand(Protocol):
    """A request that is worked on; each call may raise ``ModelGoneError``."""

    async def first_token(self) -> int:
        """Wait for the first token; return how many tokens of the prompt were cached."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait for more of the answer."""
        ...

    async def finished(self) -> None:
        """Wait for the last token."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParts:
    """Who answers, and how.

    Attributes:
        name: Who answers, as the answer says it.
        models: The names that requests may ask for; the first one stands in where none is given.
        window_tokens: Most tokens of prompt and answer together.
        decode_token_ns: Between two tokens of an answer.
        clock: Dates the answers.
        begin: Has a request worked on, for a prompt and an answer of so many tokens.
    """

    name: str
    models: Sequence[str]
    window_tokens: int
    decode_token_ns: int
    clock: Clock
    begin: Callable[[Asked, int], AbstractAsyncContextManager[WorkInHand]]


class ModelPages:
    """Answers requests.

    Args:
        parts: Who answers, and how.
    """

    def __init__(self, parts: ModelParts) -> None:
        self._parts = parts
        self._number = 0
        self._started_s = parts.clock.now_ns() // NS_PER_S

    @property
    def pages(self) -> OpenAiPages:
        """What there is, by method and path."""
        return {
            ("GET", "/health"): self._health,
            ("GET", "/v1/models"): self._models,
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/v1/chat/completions"): partial(self._answer, asked_chat),
            ("POST", "/v1/completions"): partial(self._answer, asked_completion),
        }

    async def _health(self, _call: OpenAiCall) -> OpenAiReply:
        return OpenAiReply(content_type="text/plain")

    async def _models(self, _call: OpenAiCall) -> OpenAiReply:
        parts = self._parts
        return OpenAiReply(body=models_page(parts.models, self._started_s, parts.window_tokens))

    async def _tokenize(self, call: OpenAiCall) -> OpenAiReply:
        return OpenAiReply(body=tokens_page(tokenized(call.body), self._parts.window_tokens))

    async def _answer(
        self, read: Callable[[bytes], Asked], call: OpenAiCall
    ) -> OpenAiReply | OpenAiEvents:
        asked = read(call.body)
        if asked.model and asked.model not in self._parts.models:
            text = f"the model `{asked.model[:100]}` does not exist"
            return OpenAiReply(status=404, body=error_page(404, "NotFoundError", text))
        self._check_window(asked)
        self._number = number = self._number + 1
        if asked.is_streamed:
            return self._stream(asked, number)
        async with self._parts.begin(asked, self._answer_tokens(asked)) as work:
            answer = self._said(asked, await work.first_token(), number)
            await work.finished()
        return OpenAiReply(body=answer.whole)

    async def _stream(self, asked: Asked, number: int) -> AsyncGenerator[bytes, None]:
        """Yield an answer's events, each when its tokens are made."""
        async with self._parts.begin(asked, self._answer_tokens(asked)) as work:
            answer = self._said(asked, await work.first_token(), number)
            events = answer.events(has_usage=asked.has_usage)
            for piece, event in zip(answer.pieces, events, strict=False):
                yield event
                await work.pause(len(encode(piece)) * self._parts.decode_token_ns / NS_PER_S)
            await work.finished()
            for event in events:
                yield event

    def _check_window(self, asked: Asked) -> None:
        """Refuse a prompt that is too long, as engines do.

        Raises:
            InvalidRequestError: It is.
        """
        window = self._parts.window_tokens
        if len(asked.tokens) >= window:
            raise InvalidRequestError(
                field="prompt", value=f"{len(asked.tokens)} tokens", allowed=f"less than {window}"
            )

    def _answer_tokens(self, asked: Asked) -> int:
        """Return how long the answer will be, to a digit or two."""
        longest = self._text(len(asked.tokens), len(asked.tokens))
        return min(asked.output_tokens, len(encode(longest)))

    def _said(self, asked: Asked, cached_tokens: int, number: int) -> Answer:
        pieces, is_cut = said_of(asked, self._text(len(asked.tokens), cached_tokens))
        usage = Usage(
            prompt_tokens=len(asked.tokens),
            cached_tokens=cached_tokens,
            completion_tokens=sum(len(encode(piece)) for piece in pieces),
        )
        kind = "chatcmpl" if asked.is_chat else "cmpl"
        return Answer(
            name=f"{kind}-{self._parts.name}-{number}",
            created_s=self._parts.clock.now_ns() // NS_PER_S,
            model=asked.model or self._parts.models[0],
            pieces=pieces,
            is_cut=is_cut,
            is_chat=asked.is_chat,
            usage=usage,
        )

    def _text(self, prompt_tokens: int, cached_tokens: int) -> str:
        return (
            f"{self._parts.name} computed {prompt_tokens - cached_tokens} of {prompt_tokens} "
            f"prompt tokens; {cached_tokens} were cached."
        )
