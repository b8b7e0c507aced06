"""A provider outside of the cluster, as a demo needs one: it answers whoever has its key."""

import hmac
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Final

from inferencecache.app.engine_work import EngineWork
from inferencecache.app.model_pages import ModelPages, ModelParts, WorkInHand
from inferencecache.clock import NS_PER_MS, Clock
from inferencecache.simulation import ComputeRules, EngineCompute
from inferencecache.simulation.openai_answer import error_page
from inferencecache.simulation.openai_request import Asked
from inferencecache.transport.openai_listener import (
    OpenAiCall,
    OpenAiEvents,
    OpenAiListener,
    OpenAiPage,
    OpenAiReply,
)

_NAME: Final = "the provider"
_BASE_NS: Final = 300 * NS_PER_MS
_TOKEN_NS: Final = 2 * NS_PER_MS
_WINDOW_TOKENS: Final = 131_072
_AT_ONCE: Final = 1_000_000_000
"""Prompt tokens in a second: a provider has many machines."""


class DemoProvider:
    """Answers requests that come with the key.

    Args:
        model: The one model it has.
        key_file: The key that it takes, looked up anew for every request.
        clock: The time.

    Attributes:
        answered: Requests that came with the key.
        refused: Requests that did not.
    """

    def __init__(self, model: str, key_file: Path, clock: Clock) -> None:
        self._key_file = key_file
        self.answered = self.refused = 0
        rules = ComputeRules(
            prefill_tokens_per_s=_AT_ONCE,
            base_ns=_BASE_NS,
            decode_token_ns=_TOKEN_NS,
            concurrency_max=10_000,
        )
        self._work = EngineWork(EngineCompute(rules, _NothingCached()), clock, _say_nothing)
        pages = ModelPages(
            ModelParts(
                name=_NAME,
                models=(model,),
                window_tokens=_WINDOW_TOKENS,
                decode_token_ns=_TOKEN_NS,
                clock=clock,
                begin=self._begin,
            )
        ).pages
        guarded = {place: partial(self._guarded, page) for place, page in pages.items()}
        self._listener = OpenAiListener("provider", "127.0.0.1:0", guarded)

    @property
    def address(self) -> str:
        """Where it answers."""
        return self._listener.address

    async def start(self) -> None:
        """Begin to answer."""
        await self._listener.open()
        self._work.start()

    async def stop(self) -> None:
        """Answer no more."""
        await self._work.stop()
        await self._listener.close()

    async def _guarded(self, page: OpenAiPage, call: OpenAiCall) -> OpenAiReply | OpenAiEvents:
        """Let *page* answer whoever has the key."""
        wanted = f"Bearer {self._key_file.read_text(encoding='utf-8').strip()}"
        if not hmac.compare_digest(call.authorization.encode(), wanted.encode()):
            self.refused += 1
            body = error_page(401, "invalid_request_error", "Incorrect API key provided.")
            return OpenAiReply(status=401, body=body)
        self.answered += 1
        return await page(call)

    def _begin(self, asked: Asked, answer_tokens: int) -> AbstractAsyncContextManager[WorkInHand]:
        return self._work.request(None, len(asked.tokens), answer_tokens)


class _NothingCached:
    """Providers say nothing of their caches."""

    def matched_tokens(self, _prompt: None, /) -> int:
        """Return 0."""
        return 0

    def store(self, _prompt: None, /) -> None:
        """Keep nothing."""


async def _say_nothing(_change: None) -> None:
    """Tell nobody."""
