"""A publisher and a replay socket as an engine has them, each message under the test's control."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import zmq
import zmq.asyncio
from own_ports import own_port

END = b"\xff" * 8
TOPIC = "kv-events"
_BIND_ATTEMPTS = 200
_BIND_PAUSE_S = 0.01


class EngineSockets:
    """One rank of an engine.

    Attributes:
        ring: Past messages by number; what is taken out cannot be replayed.
        new_shape: Replays carry the topic, as newer engines do.
        has_end: Replays end with a mark.
        withheld: Numbers that the next replays leave out, once each per request listed.
        requests: Start of every replay asked for.
        subscribed: Set once the publisher knows of a subscription; what it sends before is lost.
        port: Where it publishes.
        replay_port: Where it replays.
    """

    def __init__(self, topic: str = TOPIC, port: int = 0, replay_port: int = 0) -> None:
        self.ring: dict[int, bytes] = {}
        self.new_shape = True
        self.has_end = True
        self.withheld: list[set[int]] = []
        self.requests: list[int] = []
        self.requested = asyncio.Event()
        self.subscribed = asyncio.Event()
        self._context = zmq.asyncio.Context()
        self._topic = topic.encode()
        self._next = 0
        self.port = port
        self.replay_port = replay_port
        self._pub: zmq.asyncio.Socket | None = None
        self._router: zmq.asyncio.Socket | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def endpoint(self) -> str:
        """Where it publishes."""
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def replay_endpoint(self) -> str:
        """Where it replays."""
        return f"tcp://127.0.0.1:{self.replay_port}"

    def start(self) -> None:
        """Begin a life, on the ports of the life before."""
        self.ring, self._next = {}, 0
        self.subscribed.clear()
        self._pub, self.port = self._bind(zmq.XPUB, self.port)
        self._router, self.replay_port = self._bind(zmq.ROUTER, self.replay_port)
        self._tasks = [
            asyncio.create_task(self._answer(self._router)),
            asyncio.create_task(self._hear_subscriptions(self._pub)),
        ]

    async def stop(self) -> None:
        """End this life."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        for socket in (self._pub, self._router):
            if socket is not None:
                socket.close(0)

    def close(self) -> None:
        """Free everything."""
        self._context.destroy(0)

    async def publish(self, payload: bytes, *, lose: bool = False, burn: bool = False) -> int:
        """Number *payload* and send it.

        Args:
            payload: The batch.
            lose: Keep it for replays only.
            burn: Use up the number and nothing else.
        """
        number = self._next
        self._next += 1
        if not burn:
            self.ring[number] = payload
        if not burn and not lose:
            await self.send([self._topic, number.to_bytes(8, "big"), payload])
        return number

    async def send(self, parts: list[bytes]) -> None:
        """Send any message."""
        assert self._pub is not None
        await self._pub.send_multipart(parts)

    async def _hear_subscriptions(self, pub: zmq.asyncio.Socket) -> None:
        while True:
            message = await pub.recv()
            if message[:1] == b"\x01":
                self.subscribed.set()
            else:
                self.subscribed.clear()

    async def _answer(self, router: zmq.asyncio.Socket) -> None:
        while True:
            identity, _, start = await router.recv_multipart()
            first = int.from_bytes(start, "big")
            self.requests.append(first)
            self.requested.set()
            withheld = self.withheld.pop(0) if self.withheld else set()
            head = [identity, b"", self._topic] if self.new_shape else [identity, b""]
            for number in sorted(n for n in self.ring if n >= first and n not in withheld):
                await router.send_multipart([*head, number.to_bytes(8, "big"), self.ring[number]])
            if self.has_end:
                end = (
                    [identity, b"", b"", END, b""] if self.new_shape else [identity, b"", END, b""]
                )
                await router.send_multipart(end)

    def _bind(self, kind: int, port: int) -> tuple[zmq.asyncio.Socket, int]:
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.SNDHWM, 0)
        if port:
            _bind_again(socket, port)
            return socket, port
        port = own_port()
        socket.bind(f"tcp://127.0.0.1:{port}")
        return socket, port


def _bind_again(socket: zmq.asyncio.Socket, port: int) -> None:
    """Bind to a port that an earlier socket may not have left yet: ZMQ closes in the background."""
    for _ in range(_BIND_ATTEMPTS - 1):
        try:
            socket.bind(f"tcp://127.0.0.1:{port}")
        except zmq.ZMQError:
            threading.Event().wait(_BIND_PAUSE_S)
        else:
            return
    socket.bind(f"tcp://127.0.0.1:{port}")


@asynccontextmanager
async def engine_sockets(topic: str = TOPIC) -> AsyncIterator[EngineSockets]:
    """Run one rank for the length of the block."""
    engine = EngineSockets(topic)
    engine.start()
    try:
        yield engine
    finally:
        await engine.stop()
        engine.close()


@asynccontextmanager
async def two_ranks() -> AsyncIterator[tuple[EngineSockets, EngineSockets]]:
    """Run two ranks, the second one port above the first, for the length of the block."""
    for _ in range(20):
        async with engine_sockets() as first:
            second = EngineSockets(TOPIC, first.port + 1, first.replay_port + 1)
            try:
                second.start()
            except zmq.ZMQError:  # somebody else has that port
                second.close()
                continue
            try:
                yield first, second
            finally:
                await second.stop()
                second.close()
            return
    raise RuntimeError("no two neighbouring ports are free")
