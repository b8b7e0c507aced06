"""Fake engines on free ports, and plain ZMQ sockets that listen to them."""

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self

import zmq
import zmq.asyncio

from inferencecache.app.fake_engine import FakeEngine, running_fake_engine
from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.settings.fake_engine import FakeEngineSettings

_END = 2**64 - 1


def engine_settings(**settings: object) -> FakeEngineSettings:
    """Return settings on free ports of this machine."""
    chosen = {
        "bind_endpoint": "tcp://127.0.0.1:0",
        "replay_endpoint": "tcp://127.0.0.1:0",
        "metrics_address": "127.0.0.1:0",
        **settings,
    }
    return FakeEngineSettings(**chosen)  # type: ignore[arg-type] # a test's shorthand


def fake_engine(**settings: object) -> AbstractAsyncContextManager[FakeEngine]:
    """Run a fake engine at a standing clock."""
    return running_fake_engine(engine_settings(**settings), ManualClock(1_700_000_000 * NS_PER_S))


class Listener:
    """A plain subscriber of one rank that is there before the engine says anything."""

    def __init__(self, engine: FakeEngine, rank: int = 0, topic: str = "") -> None:
        self._engine = engine
        self._context = zmq.asyncio.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._rank = rank
        self._topic = topic

    async def __aenter__(self) -> Self:
        self._socket.subscribe(self._topic)
        self._socket.connect(self._engine.endpoints[self._rank])
        await self._engine.wait_rank_subscribed(self._rank)
        return self

    async def receive(self) -> tuple[int, bytes]:
        """Return number and payload of the next message."""
        _, number, payload = await self._socket.recv_multipart()
        return int.from_bytes(number, "big"), payload

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._context.destroy(linger=0)


async def replay_of(engine: FakeEngine, start: int, rank: int = 0) -> list[int]:
    """Return the numbers in a replay from *start*, the end mark included."""
    context = zmq.asyncio.Context()
    try:
        dealer = context.socket(zmq.DEALER)
        dealer.connect(engine.replay_endpoints[rank])
        await dealer.send_multipart([b"", start.to_bytes(8, "big")])
        numbers: list[int] = []
        while _END not in numbers:
            numbers.append(int.from_bytes((await dealer.recv_multipart())[-2], "big"))
        return numbers
    finally:
        context.destroy(linger=0)
