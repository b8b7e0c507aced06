"""An HTTP/2 client that does what no gRPC library does: reset, cut frames, read byte by byte."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.errors
import h2.events
from h2.settings import SettingCodes, Settings

Headers = tuple[tuple[str, str | bytes], ...]

PUSH = "/kinference.v1.Picker/PushBody"
PULL = "/kinference.v1.Picker/PullBody"


@dataclass
class RawStream:
    """What has arrived on one stream.

    Attributes:
        number: Its id.
        headers: Of the answer, trailers included.
        data: Bytes of the answer.
        is_over: Whether the server has ended or reset it.
        is_reset: Whether it has reset it.
    """

    number: int
    headers: dict[str, str] = field(default_factory=dict)
    data: bytearray = field(default_factory=bytearray)
    is_over: bool = False
    is_reset: bool = False

    @property
    def status(self) -> str:
        """The gRPC status, empty if there was none."""
        return self.headers.get("grpc-status", "")


class RawClient:
    """One connection.

    Args:
        reader: From the server.
        writer: To the server.
        acknowledges: Whether the server may send more when data has arrived.
        window: Bytes that the server may send on each stream before that; None for the usual.

    Attributes:
        pongs: Pings that were answered.
        is_sent_away: Whether the server has announced that it closes the connection.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        acknowledges: bool,
        window: int | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._acknowledges = acknowledges
        config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        self._h2 = h2.connection.H2Connection(config)
        if window is not None:
            initial = {SettingCodes.INITIAL_WINDOW_SIZE: window}
            self._h2.local_settings = Settings(client=True, initial_values=initial)
        self._streams: dict[int, RawStream] = {}
        self._changed = asyncio.Event()
        self.pongs = 0
        self.is_sent_away = False
        self._h2.initiate_connection()

    async def flush(self) -> None:
        """Send what is waiting to be sent."""
        self._writer.write(self._h2.data_to_send())
        await self._writer.drain()

    async def run(self) -> None:
        """Read until the connection ends."""
        await self.flush()
        while data := await self._reader.read(65_536):
            for event in self._h2.receive_data(data):
                self._take(event)
            self._changed.set()
            await self.flush()

    async def open(self, path: str, extra: Headers = ()) -> RawStream:
        """Open a call."""
        number = self._h2.get_next_available_stream_id()
        headers = (
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "picker"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            *extra,
        )
        self._h2.send_headers(number, headers)
        self._streams[number] = stream = RawStream(number)
        await self.flush()
        return stream

    async def send(self, stream: RawStream, data: bytes, *, end: bool = False) -> None:
        """Send *data* as it is."""
        start = 0
        while len(data) - start > 0:
            await self.until(lambda: self._h2.local_flow_control_window(stream.number) > 0)
            room = min(
                self._h2.local_flow_control_window(stream.number), self._h2.max_outbound_frame_size
            )
            self._h2.send_data(stream.number, data[start : start + room])
            start += room
            await self.flush()
        if end:
            self._h2.end_stream(stream.number)
            await self.flush()

    async def reset(self, stream: RawStream, code: h2.errors.ErrorCodes) -> None:
        """Reset a call."""
        self._h2.reset_stream(stream.number, code)
        await self.flush()

    async def ping(self) -> None:
        """Ask whether the server is there, and wait for its answer."""
        before = self.pongs
        self._h2.ping(b"are-you?")
        await self.flush()
        await self.until(lambda: self.pongs > before or self.is_sent_away)

    async def allow(self, stream: RawStream, count: int) -> None:
        """Let the server send *count* bytes more."""
        self._h2.acknowledge_received_data(count, stream.number)
        await self.flush()

    async def widen(self, stream: RawStream, count: int) -> None:
        """Let the server send *count* bytes more than it was told, though none have arrived."""
        self._h2.increment_flow_control_window(count, stream.number)
        await self.flush()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something has arrived that makes *holds* true."""
        async with asyncio.timeout(60):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def answer(self, stream: RawStream) -> RawStream:
        """Wait for the end of a call."""
        await self.until(lambda: stream.is_over)
        return stream

    def close(self) -> None:
        """Close the connection without a word."""
        self._writer.transport.abort()

    def _take(self, event: h2.events.Event) -> None:
        self.pongs += isinstance(event, h2.events.PingAckReceived)
        self.is_sent_away |= isinstance(event, h2.events.ConnectionTerminated)
        stream = self._streams.get(getattr(event, "stream_id", 0) or 0)
        if stream is None:
            return
        if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
            stream.headers.update(event.headers or ())
        elif isinstance(event, h2.events.DataReceived):
            stream.data += event.data or b""
            if self._acknowledges and event.flow_controlled_length:
                self._h2.acknowledge_received_data(event.flow_controlled_length, stream.number)
        elif isinstance(event, h2.events.StreamEnded):
            stream.is_over = True
        elif isinstance(event, h2.events.StreamReset):
            stream.is_over = stream.is_reset = True


@asynccontextmanager
async def raw_client(
    target: str, *, acknowledges: bool = True, window: int | None = None
) -> AsyncIterator[RawClient]:
    """Connect to *target* for the length of the block."""
    host, _, port = target.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    client = RawClient(reader, writer, acknowledges=acknowledges, window=window)
    task = asyncio.create_task(client.run())
    try:
        yield client
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        client.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def framed(message: bytes) -> bytes:
    """Return *message* as gRPC frames it."""
    return b"\0" + len(message).to_bytes(4, "big") + message
