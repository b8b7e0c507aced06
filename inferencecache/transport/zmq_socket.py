"""ZMQ sockets on an event loop, read without an awaitable per message.

Rules of this file
------------------
* A ZMQ socket's file descriptor tells that something happened inside the socket, not that a message
  is there. So a reader first takes what it can get without waiting and only then waits, and it
  always waits through ``wake``, which the descriptor sets.
* Nothing blocks: neither reading nor sending nor closing.
"""

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import zmq

from inferencecache.clock import NS_PER_S
from inferencecache.events import replay_request

_LINGER_MS: Final = 0
_HANDSHAKE_MS: Final = 5_000
_RECONNECT_MS: Final = 100
_RECONNECT_MAX_MS: Final = 2_000
_PROBES: Final = 4
_MONITORED: Final = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
_EVENT_BYTES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketLimits:
    """What a peer may make us hold.

    Attributes:
        messages_max: Messages queued before ZMQ drops some.
        message_bytes_max: Largest message; a peer that sends a larger one is disconnected.
        vanished_after_ns: About how long a connection lasts whose peer is gone without a word.
    """

    messages_max: int
    message_bytes_max: int
    vanished_after_ns: int


class ReadySocket:
    """A socket that sets an event whenever it may have something to read.

    Args:
        socket: Owned from now on.
        wake: Set from the running event loop.
    """

    def __init__(self, socket: "zmq.Socket[bytes]", wake: asyncio.Event) -> None:
        self._socket = socket
        self._loop = asyncio.get_running_loop()
        self._descriptor: int = socket.getsockopt(zmq.FD)  # type: ignore[assignment] # an integer
        self._loop.add_reader(self._descriptor, wake.set)
        wake.set()

    def receive(self) -> list[bytes] | None:
        """Return the parts of the next message, None if there is none yet."""
        try:
            return self._socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return None

    def send(self, parts: list[bytes]) -> bool:
        """Send a message if the socket takes it now."""
        try:
            self._socket.send_multipart(parts, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def close(self) -> None:
        """Close the socket; what it has queued is dropped."""
        self._loop.remove_reader(self._descriptor)
        self._socket.close(_LINGER_MS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class LiveSocket:
    """A subscription to one publisher, and news of its connection.

    Args:
        context: Owner of the sockets.
        endpoint: Where the publisher listens.
        topic: Prefix of the topics wanted.
        limits: What the publisher may make us hold.
        wake: Set when there may be something to read.

    Raises:
        zmq.ZMQError: The endpoint has no usable form.
    """

    def __init__(
        self,
        context: "zmq.Context[zmq.Socket[bytes]]",
        endpoint: str,
        topic: str,
        limits: SocketLimits,
        wake: asyncio.Event,
    ) -> None:
        socket = context.socket(zmq.SUB)
        _limit(socket, limits)
        socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
        monitor = socket.get_monitor_socket(_MONITORED)
        self._monitored = socket
        self._monitor = ReadySocket(monitor, wake)
        self._messages = ReadySocket(socket, wake)
        try:
            socket.connect(endpoint)
        except zmq.ZMQError:
            self.close()
            raise

    def receive(self) -> list[bytes] | None:
        """Return the parts of the next message, None if there is none yet."""
        return self._messages.receive()

    def news(self) -> bool | None:
        """Return True for a connection made, False for one lost, None for nothing new."""
        while (parts := self._monitor.receive()) is not None:
            event = int.from_bytes(parts[0][:_EVENT_BYTES], "little")
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                return True
            if event == zmq.EVENT_DISCONNECTED:
                return False
        return None

    def close(self) -> None:
        """Close both sockets."""
        self._monitored.disable_monitor()
        self._monitor.close()
        self._messages.close()


def open_replay(
    context: "zmq.Context[zmq.Socket[bytes]]",
    endpoint: str,
    start: int,
    limits: SocketLimits,
    wake: asyncio.Event,
) -> ReadySocket:
    """Return a fresh socket on which a replay from number *start* has been asked for.

    The publisher may not be there yet: the request waits in the socket until it is.

    Raises:
        zmq.ZMQError: The endpoint has no usable form.
    """
    socket = context.socket(zmq.DEALER)
    _limit(socket, limits)
    opened = ReadySocket(socket, wake)
    try:
        socket.connect(endpoint)
    except zmq.ZMQError:
        opened.close()
        raise
    opened.send(replay_request(start))
    return opened


def _limit(socket: "zmq.Socket[bytes]", limits: SocketLimits) -> None:
    socket.setsockopt(zmq.RCVHWM, limits.messages_max)
    socket.setsockopt(zmq.MAXMSGSIZE, limits.message_bytes_max)
    socket.setsockopt(zmq.HANDSHAKE_IVL, _HANDSHAKE_MS)
    socket.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, _RECONNECT_MAX_MS)
    socket.setsockopt(zmq.IPV6, 1)
    # The kernel's own, since not every publisher answers the heartbeats of ZMQ.
    idle_s, interval_s = keepalive_s(limits.vanished_after_ns)
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, idle_s)
    socket.setsockopt(zmq.TCP_KEEPALIVE_INTVL, interval_s)
    socket.setsockopt(zmq.TCP_KEEPALIVE_CNT, _PROBES)


def keepalive_s(vanished_after_ns: int) -> tuple[int, int]:
    """Return after how many idle seconds to probe a peer, and the seconds between probes.

    Half of the time is idleness, the other half probes; the kernel counts whole seconds.
    """
    half_s = vanished_after_ns / NS_PER_S / 2
    return max(1, round(half_s)), max(1, round(half_s / _PROBES))
