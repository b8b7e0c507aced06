"""A gRPC client that takes less of the machine than gRPC's own.

A client at the side of the server that it measures takes processor time that the server then lacks.
This one has one connection, one thread, and knows of gRPC what the benchmarks' calls need. Messages
must fit into the window of a stream.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, cast

from benchmarks.frames import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
    Frame,
    FrameReader,
    Setting,
    frame,
    header_block,
    headers_of,
    number_bytes,
    read_settings,
    settings,
    window_update,
)
from benchmarks.measure import require

_PREFIX_BYTES: Final = 5
_WINDOW_MAX: Final = 2**31 - 1
_WINDOW_BYTES: Final = 65_535
"""Of a connection, and of a stream until the server says otherwise."""

_FRAME_BYTES: Final = 16_384
_STATUS: Final = b"grpc-status"
_OK: Final = b"0"


class RefusedError(Exception):
    """A call that ended in another status than OK."""


class _Call(NamedTuple):
    """A call under way.

    Attributes:
        answer: Its message, once it is over.
        data: What has come so far.
    """

    answer: asyncio.Future[bytes]
    data: bytearray


class _Unsent(NamedTuple):
    """A message that waits for room in the windows.

    Attributes:
        stream: Its stream.
        framed: The message as gRPC frames it.
        flags: Whether the stream ends with it.
    """

    stream: int
    framed: bytes
    flags: int


class WireConnection(asyncio.Protocol):
    """Makes calls of one or many messages, and takes answers of one message.

    A message is sent once there is room for all of it, those of one stream in order.

    Args:
        authority: Host and port of the server.
    """

    def __init__(self, authority: str) -> None:
        self._authority = authority.encode()
        self._reader = FrameReader()
        self._transport: asyncio.WriteTransport | None = None
        self._next_stream = 1
        self._calls: dict[int, _Call] = {}
        self._begins: dict[str, bytes] = {}
        self._unsent: list[_Unsent] = []
        self._window = self._stream_window = _WINDOW_BYTES
        self._spent: defaultdict[int, int] = defaultdict(int)
        self._frame_bytes = _FRAME_BYTES
        self._taken = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the server, and let it send as much as it likes."""
        self._transport = cast("asyncio.WriteTransport", transport)
        wanted = {Setting.HEADER_TABLE_SIZE: 0, Setting.INITIAL_WINDOW_SIZE: _WINDOW_MAX}
        widened = window_update(0, _WINDOW_MAX - _WINDOW_BYTES)
        self._write(PREFACE + settings(wanted) + widened)

    def data_received(self, data: bytes) -> None:
        """Take what the server sends."""
        for each in self._reader.take(data):
            self._take(each)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what is under way."""
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if not call.answer.done():
                call.answer.set_exception(exc or ConnectionResetError("the server has gone"))

    def call(self, path: str, message: bytes) -> asyncio.Future[bytes]:
        """Make a call of one message.

        Args:
            path: ``/service/method``.
            message: What to send.
        """
        stream, begin, answer = self._begin(path)
        self._put(_Unsent(stream, _framed(message), END_STREAM), begin)
        return answer

    def stream(self, path: str) -> "WireStream":
        """Begin a call of many messages."""
        stream, begin, answer = self._begin(path)
        self._write(begin)
        return WireStream(self, stream, answer)

    def put(self, stream: int, message: bytes) -> None:
        """Send one of many messages of a stream."""
        self._put(_Unsent(stream, _framed(message), 0))

    def end(self, stream: int) -> None:
        """End a stream after what was put into it."""
        self._put(_Unsent(stream, b"", END_STREAM))

    def close(self) -> None:
        """Close it."""
        if self._transport is not None:
            self._transport.close()

    def _write(self, data: bytes) -> None:
        if data and self._transport is not None:
            self._transport.write(data)

    def _begin(self, path: str) -> tuple[int, bytes, asyncio.Future[bytes]]:
        """Return a new stream, what begins it, and the future answer."""
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        answer = asyncio.get_running_loop().create_future()
        self._calls[stream] = _Call(answer, bytearray())
        block = self._begins.get(path)
        if block is None:
            block = self._begins[path] = _request_block(path, self._authority)
        return stream, frame(HEADERS, END_HEADERS, stream, block), answer

    def _put(self, unsent: _Unsent, begin: bytes = b"") -> None:
        require(len(unsent.framed) <= self._stream_window, "a message fits into a stream's window")
        if self._unsent or not self._has_room(unsent):
            self._unsent.append(unsent)
            self._write(begin)
            self._send()
        else:
            self._write(begin + self._sent(unsent))

    def _send(self) -> None:
        """Send what there is room for now."""
        waiting: list[_Unsent] = []
        full: set[int] = set()
        for unsent in self._unsent:
            if unsent.stream in full or not self._has_room(unsent):
                full.add(unsent.stream)
                waiting.append(unsent)
            else:
                self._write(self._sent(unsent))
        self._unsent = waiting

    def _has_room(self, unsent: _Unsent) -> bool:
        room = min(self._window, self._stream_window - self._spent[unsent.stream])
        return len(unsent.framed) <= room

    def _sent(self, unsent: _Unsent) -> bytes:
        """Return the frames of a message that there is room for, which is taken."""
        stream, framed, flags = unsent
        self._window -= len(framed)
        self._spent[stream] += len(framed)
        step = self._frame_bytes
        starts = range(0, max(len(framed), 1), step)
        return b"".join(
            frame(DATA, flags if start == starts[-1] else 0, stream, framed[start : start + step])
            for start in starts
        )

    def _take(self, each: Frame) -> None:
        kind, flags, stream, payload = each
        if kind == DATA:
            self._calls[stream].data.extend(payload)
            self._count(len(payload))
            require(not flags & END_STREAM, "a call ends with its status")
        elif kind == HEADERS:
            require(flags & END_HEADERS > 0, "headers come in one frame")
            if flags & END_STREAM:
                self._finish(stream, headers_of(payload))
        elif kind == WINDOW_UPDATE:
            self._widen(stream, int.from_bytes(payload, "big"))
        elif flags & ACK:
            require(kind in {PING, SETTINGS}, "nothing else is acknowledged")
        elif kind == PING:
            self._write(frame(PING, ACK, 0, payload))
        else:
            require(kind == SETTINGS, "nothing is reset, nobody goes away")
            self._adapt(read_settings(payload))

    def _finish(self, stream: int, trailers: dict[bytes, bytes]) -> None:
        call = self._calls.pop(stream)
        self._spent.pop(stream, None)
        if trailers[_STATUS] == _OK:
            call.answer.set_result(bytes(call.data[_PREFIX_BYTES:]))
        else:
            said = trailers.get(b"grpc-message", b"").decode()
            call.answer.set_exception(RefusedError(f"status {trailers[_STATUS].decode()} {said}"))

    def _widen(self, stream: int, more_bytes: int) -> None:
        if not stream:
            self._window += more_bytes
        elif stream in self._calls:
            self._spent[stream] -= more_bytes
        self._send()

    def _adapt(self, stated: dict[int, int]) -> None:
        """Do as the server wishes."""
        self._frame_bytes = stated.get(Setting.MAX_FRAME_SIZE, self._frame_bytes)
        self._stream_window = stated.get(Setting.INITIAL_WINDOW_SIZE, self._stream_window)
        self._write(frame(SETTINGS, ACK, 0, b""))
        self._send()

    def _count(self, data_bytes: int) -> None:
        """Let the server send again what it has sent, before its window is used up."""
        self._taken += data_bytes
        if self._taken > _WINDOW_MAX // 2:
            self._write(window_update(0, self._taken))
            self._taken = 0


class WireStream:
    """A call of many messages.

    Args:
        connection: Its connection.
        stream: Its number there.
        answer: What comes once it has ended.
    """

    def __init__(
        self, connection: WireConnection, stream: int, answer: asyncio.Future[bytes]
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._answer = answer

    async def put(self, message: bytes) -> None:
        """Send one message, as soon as there is room for it."""
        self._connection.put(self._stream, message)

    async def finish(self) -> bytes:
        """End it and return the answer.

        Raises:
            RefusedError: It ended in another status than OK.
        """
        self._connection.end(self._stream)
        return await self._answer


def _framed(message: bytes) -> bytes:
    return b"\0" + number_bytes(len(message)) + message


def _request_block(path: str, authority: bytes) -> bytes:
    return header_block(
        {
            b":method": b"POST",
            b":scheme": b"http",
            b":path": path.encode(),
            b":authority": authority,
            b"te": b"trailers",
            b"content-type": b"application/grpc",
        }
    )


@asynccontextmanager
async def wire_connection(target: str) -> AsyncIterator[WireConnection]:
    """Connect to *target* for the length of the block."""
    host, _, port = target.rpartition(":")
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: WireConnection(target), host, int(port))
    try:
        yield connection
    finally:
        connection.close()
