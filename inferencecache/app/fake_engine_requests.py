"""Requests to a fake engine: its OpenAI-shaped paths, its cache and the time that it takes."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Final

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from inferencecache.app.engine_work import EngineWork
from inferencecache.app.model_pages import ModelPages, ModelParts, WorkInHand
from inferencecache.clock import NS_PER_S, Clock
from inferencecache.settings.fake_engine import FakeEngineSettings
from inferencecache.simulation import (
    ComputeRules,
    EngineCompute,
    EngineGauges,
    EnginePlayer,
    Serve,
)
from inferencecache.simulation.engine_player import Emission
from inferencecache.simulation.openai_request import Asked
from inferencecache.transport.openai_listener import OpenAiCall, OpenAiListener, OpenAiReply

_RANK: Final = 0


class EngineRequests:
    """Answers the requests of one engine.

    Args:
        settings: Where, how fast, and under which name.
        player: The engine's cache and messages.
        clock: The time.
        send: Sends what a computed prompt makes the engine say.
        page: Makes the engine's metrics page.
    """

    def __init__(
        self,
        settings: FakeEngineSettings,
        player: EnginePlayer,
        clock: Clock,
        send: Callable[[Emission], Awaitable[None]],
        page: Callable[[], Awaitable[bytes]],
    ) -> None:
        self._page = page
        rules = ComputeRules(
            prefill_tokens_per_s=settings.prefill_tokens_per_s,
            base_ns=settings.base_ns,
            decode_token_ns=settings.decode_token_ns,
            concurrency_max=settings.concurrency_max,
        )
        self._work = EngineWork(EngineCompute(rules, _RankCache(player, clock)), clock, send)
        pages = ModelPages(
            ModelParts(
                name=settings.name,
                models=(settings.model_name,),
                window_tokens=settings.window_tokens,
                decode_token_ns=settings.decode_token_ns,
                clock=clock,
                begin=self._begin,
            )
        ).pages
        self._listener = OpenAiListener(
            "openai", settings.openai_address, {**pages, ("GET", "/metrics"): self._metrics}
        )

    @property
    def address(self) -> str:
        """Where it answers."""
        return self._listener.address

    def with_load(self, gauges: EngineGauges) -> EngineGauges:
        """Return *gauges* with the requests in them."""
        return replace(gauges, running=self._work.running, waiting=self._work.waiting)

    async def open(self) -> None:
        """Begin to answer.

        Raises:
            ListenError: The address cannot be had.
        """
        await self._listener.open()
        self._work.start()

    async def close(self) -> None:
        """Lose every request and answer no more."""
        await self._work.stop()
        await self._listener.close()

    def _begin(self, asked: Asked, answer_tokens: int) -> AbstractAsyncContextManager[WorkInHand]:
        step = Serve(rank=_RANK, then=list(asked.tokens), salt=asked.salt)
        return self._work.request(step, len(asked.tokens), answer_tokens)

    async def _metrics(self, _call: OpenAiCall) -> OpenAiReply:
        return OpenAiReply(body=await self._page(), content_type=CONTENT_TYPE_PLAIN_0_0_4)


class _RankCache:
    """The cache that requests use."""

    def __init__(self, player: EnginePlayer, clock: Clock) -> None:
        self._player = player
        self._clock = clock

    def matched_tokens(self, prompt: Serve, /) -> int:
        """Return how many leading tokens of a prompt need not be computed."""
        return self._player.lives[_RANK].matched_tokens(prompt.prompt)

    def store(self, prompt: Serve, /) -> Emission:
        """Cache a prompt; return what is to be said of it."""
        return self._player.play(prompt, self._clock.now_ns() / NS_PER_S)
