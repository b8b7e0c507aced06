"""A gateway that speaks HTTP/2 by the ``h2`` library: it takes less of the machine than gRPC's own.

A client at the side of the server that it measures takes processor time that the server then lacks.
This one has one connection, one thread, and knows of gRPC what three calls need. Bodies must fit
into the window of a stream.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)

from benchmarks.measure import require
from inferencecache.kinference.v1 import picker_pb2 as pb

_PREFIX_BYTES: Final = 5
_WINDOW_BYTES: Final = 2**30
_OK: Final = (b"grpc-status", b"0")


class _Call(NamedTuple):
    """A call under way.

    Attributes:
        answer: Its last message, once it is over.
        data: What has come so far.
    """

    answer: asyncio.Future[bytes]
    data: bytearray


class _Connection(asyncio.Protocol):
    """Makes calls, each of one message, and takes answers of one message."""

    def __init__(self, authority: str) -> None:
        config = H2Configuration(
            client_side=True,
            header_encoding=None,
            normalize_outbound_headers=False,
            validate_outbound_headers=False,
            validate_inbound_headers=False,
        )
        self._h2 = H2Connection(config)
        self._authority = authority.encode()
        self._calls: dict[int, _Call] = {}
        self._unsent: deque[tuple[int, bytes]] = deque()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the server, and let it send as much as it likes."""
        self._transport = cast("asyncio.WriteTransport", transport)
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW_BYTES)
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Take what the server sends."""
        for event in self._h2.receive_data(data):
            self._take(event)
        self._send()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what is under way."""
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if not call.answer.done():
                call.answer.set_exception(exc or ConnectionResetError("the server has gone"))

    def call(self, method: bytes, message: bytes) -> asyncio.Future[bytes]:
        """Begin a call of one of the picker's methods."""
        number = self._h2.get_next_available_stream_id()
        call = _Call(asyncio.get_running_loop().create_future(), bytearray())
        self._calls[number] = call
        headers = [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", b"/kinference.v1.Picker/" + method),
            (b":authority", self._authority),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
        ]
        self._h2.send_headers(number, headers)
        self._unsent.append((number, b"\0" + len(message).to_bytes(4, "big") + message))
        self._send()
        self._flush()
        return call.answer

    def close(self) -> None:
        """Close it."""
        if self._transport is not None:
            self._transport.close()

    def _take(self, event: Event) -> None:
        require(not isinstance(event, (ConnectionTerminated, StreamReset)), "nothing is reset")
        if isinstance(event, DataReceived):
            self._calls[event.stream_id].data.extend(event.data)
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, TrailersReceived):
            require(_OK in event.headers, "the call is answered")
        elif isinstance(event, StreamEnded):
            call = self._calls.pop(event.stream_id)
            call.answer.set_result(bytes(call.data[_PREFIX_BYTES:]))

    def _send(self) -> None:
        """Send messages for which there is room, in order."""
        while self._unsent:
            number, framed = self._unsent[0]
            if len(framed) > self._h2.local_flow_control_window(number):
                return
            self._unsent.popleft()
            step = self._h2.max_outbound_frame_size
            for start in range(0, len(framed), step):
                is_last = start + step >= len(framed)
                self._h2.send_data(number, framed[start : start + step], end_stream=is_last)

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and self._transport is not None:
            self._transport.write(data)


class WireGateway:
    """Calls one picker.

    Args:
        connection: To it.
    """

    def __init__(self, connection: _Connection) -> None:
        self._call = connection.call

    async def push(self, messages: list[bytes]) -> int:
        """Push a body of one chunk and return its stream_id."""
        (message,) = messages
        return pb.PushBodyResponse.FromString(await self._call(b"PushBody", message)).stream_id

    async def pick(self, stream_id: int) -> pb.PickResponse:
        """Pick."""
        request = pb.PickRequest(body_stream_id=stream_id).SerializeToString()
        return pb.PickResponse.FromString(await self._call(b"Pick", request))

    async def pull(self, picked: pb.PickResponse) -> None:
        """Pull a body of one chunk and throw it away."""
        request = pb.PullBodyRequest(response_id=picked.response_id).SerializeToString()
        chunk = await self._call(b"PullBody", request)
        require(len(chunk) >= picked.body_total_bytes, "the whole body came back")


@asynccontextmanager
async def wire_gateway(target: str) -> AsyncIterator[WireGateway]:
    """Connect to *target* for the length of the block."""
    host, _, port = target.rpartition(":")
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: _Connection(target), host, int(port))
    try:
        yield WireGateway(connection)
    finally:
        connection.close()
