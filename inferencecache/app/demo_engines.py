"""The engines of a demo, which can be killed and come back by themselves."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec

from inferencecache.app.fake_engine import FakeEngine
from inferencecache.clock import NS_PER_S
from inferencecache.simulation import Serve
from inferencecache.transport.openai_listener import OpenAiCall, OpenAiListener, OpenAiReply

_PROBE_TOKENS: Final = 16


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
        self._listener = OpenAiListener(
            "engine control",
            address,
            {("POST", f"/engines/{name}/kill"): partial(self._kill, name) for name in engines},
        )

    @property
    def url(self) -> str:
        """Where it is asked."""
        return f"http://{self._listener.address}"

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
        for task in self._returning.values():
            task.cancel()
        await asyncio.gather(*self._returning.values(), return_exceptions=True)
        self._returning.clear()
        for engine in self._engines.values():
            if engine.is_down:
                await engine.revive()
            if engine.player.streams[0].next_number == 0:
                await engine.play(Serve(count=_PROBE_TOKENS))

    async def _kill(self, name: str, _call: OpenAiCall) -> OpenAiReply:
        engine = self._engines[name]
        if engine.is_down:
            return OpenAiReply(status=409, body=_said(f"{name} is down already"))
        await engine.crash()
        self._returning[name] = asyncio.create_task(self._return(engine))
        return OpenAiReply(body=_said(f"{name} is down; it is back in {self._down_s:g} s"))

    async def _return(self, engine: FakeEngine) -> None:
        await asyncio.sleep(self._down_s)
        await engine.revive()


def _said(text: str) -> bytes:
    return msgspec.json.encode({"message": text}) + b"\n"
