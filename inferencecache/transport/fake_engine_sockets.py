"""The sockets of a fake engine: per rank one that publishes and one that answers replays.

The publishing socket is an XPUB, the same on the wire as a PUB, because it tells when somebody
subscribes. Rank r listens r ports above rank 0, as engines do.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Final

import zmq
import zmq.asyncio

from inferencecache.simulation.engine_config import PublisherPlan
from inferencecache.simulation.engine_stream import EngineStream, Message
from inferencecache.transport.listen import ListenError

_TCP: Final = re.compile(r"(?P<host>tcp://.+):(?P<port>\d+|\*)")
_ATTEMPTS: Final = 20
_REOPEN_ATTEMPTS: Final = 200
_REOPEN_PAUSE_S: Final = 0.005
_SUBSCRIBED: Final = 1


class FakeEngineSockets:
    """Binds, sends and answers for all ranks of one engine.

    Args:
        plan: Where.
        streams: Per rank, what replays are answered from.

    Attributes:
        endpoints: Per rank, where to subscribe, with real ports; empty before :meth:`start`.
        replay_endpoints: Per rank, where to ask for replays; empty without replay.
    """

    def __init__(self, plan: PublisherPlan, streams: Sequence[EngineStream]) -> None:
        self._plan = plan
        self._streams = streams
        self._context = zmq.asyncio.Context()
        self._publishers: list[zmq.asyncio.Socket] = []
        self._routers: list[zmq.asyncio.Socket] = []
        self._subscribed = [asyncio.Event() for _ in streams]
        self._tasks: dict[int, list[asyncio.Task[None]]] = {}
        self._places: dict[tuple[int, int], str] = {}
        self.endpoints: list[str] = []
        self.replay_endpoints: list[str] = []

    def start(self) -> None:
        """Open the sockets and begin to answer.

        Raises:
            ListenError: An endpoint cannot be had; nothing stays open then.
        """
        if not self._plan.is_publishing:
            return
        try:
            self._publishers, self.endpoints = self._open(zmq.XPUB, self._plan.endpoint)
            if self._plan.replay_endpoint:
                self._routers, self.replay_endpoints = self._open(
                    zmq.ROUTER, self._plan.replay_endpoint
                )
        except ListenError:
            self._context.destroy(linger=0)
            raise
        for rank in range(len(self._publishers)):
            self._attend(rank)

    async def send(self, rank: int, message: Message) -> None:
        """Publish *message* on a rank's socket; an engine told not to publish stays silent."""
        if self._publishers and not self._publishers[rank].closed:
            await self._publishers[rank].send_multipart(message.frames(self._plan.topic))

    async def wait_subscribed(self, rank: int) -> None:
        """Return once a rank has had a subscriber."""
        await self._subscribed[rank].wait()

    async def restart(self, rank: int) -> None:
        """Close a rank's sockets and open them again at the same endpoints.

        Subscribers lose their connection and find their way back by themselves; until then
        nobody hears what is sent.
        """
        await self.close(rank)
        await self.reopen(rank)

    async def close(self, rank: int) -> None:
        """Close a rank's sockets; what it sends until :meth:`reopen` is lost."""
        if not self._publishers:
            return
        await self._leave(rank)
        self._subscribed[rank].clear()
        for kind, sockets in self._sockets():
            self._places[rank, kind] = _endpoint_of(sockets[rank])
            sockets[rank].close(linger=0)

    async def reopen(self, rank: int) -> None:
        """Open a rank's closed sockets at the endpoints that they had.

        Raises:
            ListenError: Somebody else has taken one.
        """
        if not self._publishers:
            return
        for kind, sockets in self._sockets():
            sockets[rank] = await self._reopened(self._places.pop((rank, kind)), kind)
        self._attend(rank)

    async def stop(self) -> None:
        """Close everything; what is not sent yet is lost."""
        for rank in list(self._tasks):
            await self._leave(rank)
        self._context.destroy(linger=0)

    def _sockets(self) -> list[tuple[int, list[zmq.asyncio.Socket]]]:
        """Return the sockets of all ranks, by kind."""
        kinds: list[tuple[int, list[zmq.asyncio.Socket]]] = [(zmq.XPUB, self._publishers)]
        return [*kinds, (zmq.ROUTER, self._routers)] if self._routers else kinds

    def _attend(self, rank: int) -> None:
        """Begin to note subscriptions and to answer replays."""
        self._tasks[rank] = [asyncio.create_task(self._watch(rank))]
        if self._routers:
            self._tasks[rank].append(asyncio.create_task(self._answer(rank)))

    async def _leave(self, rank: int) -> None:
        """End what :meth:`_attend` began."""
        tasks = self._tasks.pop(rank, [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _reopened(self, place: str, kind: int) -> zmq.asyncio.Socket:
        """Return a socket at *place*; its port is free only a moment after the last was closed."""
        reason = ""
        for _ in range(_REOPEN_ATTEMPTS):
            try:
                return self._open_one(kind, place, place)
            except zmq.ZMQError as error:
                reason = error.strerror or str(error)
                await asyncio.sleep(_REOPEN_PAUSE_S)
        raise ListenError(listener="fake-engine", address=place, reason=reason)

    def _open(self, kind: int, endpoint: str) -> tuple[list[zmq.asyncio.Socket], list[str]]:
        """Open one socket per rank; a free port has to have free ones behind it."""
        reason = ""
        is_free_choice = endpoint.endswith((":0", ":*"))
        for _ in range(_ATTEMPTS if is_free_choice and len(self._streams) > 1 else 1):
            opened: list[zmq.asyncio.Socket] = []
            try:
                for rank in range(len(self._streams)):
                    first = _endpoint_of(opened[0]) if opened else endpoint
                    opened.append(self._open_one(kind, offset_endpoint(first, rank), endpoint))
            except zmq.ZMQError as error:
                reason = error.strerror or str(error)
                for socket in opened:
                    socket.close(linger=0)
                continue
            return opened, [_reachable(_endpoint_of(socket)) for socket in opened]
        raise ListenError(listener="fake-engine", address=endpoint, reason=reason)

    def _open_one(self, kind: int, place: str, endpoint: str) -> zmq.asyncio.Socket:
        socket = self._context.socket(kind)
        socket.linger = 0
        socket.sndhwm = 0
        try:
            if kind == zmq.ROUTER or self._plan.is_binding:
                socket.bind(place)
            else:
                socket.connect(endpoint)
        except zmq.ZMQError:
            socket.close(linger=0)
            raise
        return socket

    async def _watch(self, rank: int) -> None:
        """Note subscriptions."""
        while True:
            change = await self._publishers[rank].recv()
            if change and change[0] == _SUBSCRIBED:
                self._subscribed[rank].set()

    async def _answer(self, rank: int) -> None:
        """Answer replay requests, one after the other."""
        router = self._routers[rank]
        while True:
            asker, *request = await router.recv_multipart()
            for frames in self._streams[rank].replay(request):
                await router.send_multipart([asker, *frames])


def offset_endpoint(endpoint: str, rank: int) -> str:
    """Return where rank *rank* listens if rank 0 listens at *endpoint*."""
    match = _TCP.fullmatch(endpoint)
    if rank == 0 or match is None or match["port"] == "*":
        return endpoint
    return f"{match['host']}:{int(match['port']) + rank}"


def _reachable(endpoint: str) -> str:
    """Return *endpoint* with a host that a subscriber on this machine can name."""
    return endpoint.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//127.0.0.1:")


def _endpoint_of(socket: zmq.asyncio.Socket) -> str:
    """Return where *socket* can be reached from this machine; empty if it does not listen."""
    last: bytes = socket.getsockopt(zmq.LAST_ENDPOINT)  # type: ignore[assignment] # bytes by contract
    return last.rstrip(b"\0").decode()
