"""The engines of a demo, which can be killed and come back by themselves."""

import asyncio
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec

from inferencecache.app.fake_engine import FakeEngine
from inferencecache.clock import NS_PER_S
from inferencecache.simulation import Serve
from inferencecache.transport.openai_listener import OpenAiCall, OpenAiListener, OpenAiReply

_PROBE_TOKENS: Final = 16
_NEWS_MAX: Final = 100


class DemoEngines:
    """Kills engines when it is asked to, and starts them anew a while later.

    Args:
        engines: The engines, by name.
        address: Where it is asked.
        down_ns: How long an engine is away.
    """

    def __init__(self, engines: Mapping[str, FakeEngine], address: str, down_ns: int) -> None:
        self._engines = engines
        self._down_s = down_ns / NS_PER_S
        self._returning: dict[str, asyncio.Task[None]] = {}
        self._news: deque[str] = deque(maxlen=_NEWS_MAX)
        self._listener = OpenAiListener(
            "engine control",
            address,
            {
                ("POST", f"/engines/{name}/{deed}"): partial(do, name)
                for name in engines
                for deed, do in (("kill", self._kill), ("start", self._start))
            },
        )

    @property
    def url(self) -> str:
        """Where it is asked."""
        return f"http://{self._listener.address}"

    def take_news(self) -> list[str]:
        """Return what has happened since the last call, the oldest first."""
        news = list(self._news)
        self._news.clear()
        return news

    async def start(self) -> None:
        """Listen.

        Raises:
            ListenError: The address cannot be had.
        """
        await self._listener.open()

    async def stop(self) -> None:
        """Listen no more; engines that are away stay away."""
        await self._listener.close()
        for task in self._returning.values():
            task.cancel()
        await asyncio.gather(*self._returning.values(), return_exceptions=True)

    async def all_back(self) -> None:
        """Bring back who is away, and let those speak that have said nothing in this life.

        An engine's first message is what tells its subscriber of a new life.
        """
        for name, engine in self._engines.items():
            await self._bring_back(name)
            if engine.player.streams[0].next_number == 0:
                await engine.play(Serve(count=_PROBE_TOKENS))

    async def _kill(self, name: str, _call: OpenAiCall) -> OpenAiReply:
        engine = self._engines[name]
        if engine.is_down:
            return OpenAiReply(status=409, body=_said(f"{name} is down already"))
        await engine.crash()
        self._news.append(f"{name} is down: its connections and its cache are lost")
        self._returning[name] = asyncio.create_task(self._return(name))
        return OpenAiReply(body=_said(f"{name} is down; it is back in {self._down_s:g} s"))

    async def _start(self, name: str, _call: OpenAiCall) -> OpenAiReply:
        if not self._engines[name].is_down:
            return OpenAiReply(status=409, body=_said(f"{name} is up already"))
        await self._bring_back(name)
        return OpenAiReply(body=_said(f"{name} is up"))

    async def _bring_back(self, name: str) -> None:
        """End the wait for an engine that is away."""
        task = self._returning.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self._engines[name].is_down:
            await self._revive(name)

    async def _return(self, name: str) -> None:
        await asyncio.sleep(self._down_s)
        await self._revive(name)

    async def _revive(self, name: str) -> None:
        await self._engines[name].revive()
        self._news.append(f"{name} is up again, with an empty cache")


def _said(text: str) -> bytes:
    return msgspec.json.encode({"message": text}) + b"\n"
