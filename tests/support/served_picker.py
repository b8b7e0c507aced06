"""A picker behind a real gRPC port, with small limits, a chooser of the test's, and a channel."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
import pytest
from served_plane import Recorder

from inferencecache.app.picker import Picker, PickerParts
from inferencecache.app.picker_plugins import no_plugins
from inferencecache.clock import NS_PER_MS, NS_PER_S, Clock
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.kinference.v1 import picker_pb2_grpc as pb_grpc
from inferencecache.picker.choice import Chooser
from inferencecache.picker.pipeline import Director
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.metrics import MetricsSettings
from inferencecache.settings.picker import PickerParseSettings, PickerSettings
from inferencecache.transport.system_clock import SystemClock

MIB = 1_048_576

LOCAL = "127.0.0.1:0"
SMALL = PickerSettings(
    bind_address=LOCAL,
    endpoints="m=10.0.0.1:8000,m=10.0.0.2:8000,alias=10.0.0.3:8000/a/longer-name",
    body_bytes_max=8 * MIB,
    buffered_bytes_max=16 * MIB,
    upload_idle_ns=30 * NS_PER_S,
    body_ttl_ns=30 * NS_PER_S,
    unpulled_ttl_ns=30 * NS_PER_S,
    decision_ttl_ns=40 * NS_PER_S,
    tick_ns=20 * NS_PER_MS,
)
"""The limits under which the conformance list is written; those that may take real time are
longer: a busy machine is no silent caller, and may begin to read large bodies late."""

PROMPT = b'{"model": "m", "prompt": "hello"}'
Metadata = tuple[tuple[str, str], ...]


@dataclass
class ServedPicker:
    """A picker and a client of it.

    Attributes:
        picker: The server's objects.
        recorder: What it logs and counts.
        target: Where it listens.
        stub: Calls it.
        channel: The client's connection.
    """

    picker: Picker
    recorder: Recorder
    target: str
    stub: pb_grpc.PickerStub
    channel: grpc.aio.Channel

    @property
    def buffered_bytes(self) -> int:
        """What its bodies take."""
        return self.picker.plane.bodies.buffered_bytes

    async def push(self, *chunks: bytes, metadata: Metadata = ()) -> pb.PushBodyResponse:
        """Push *chunks* and close."""
        return await self.stub.PushBody(messages(chunks), metadata=metadata)

    async def pick(self, stream_id: int, **fields: object) -> pb.PickResponse:
        """Pick for *stream_id*."""
        return await self.stub.Pick(pb.PickRequest(body_stream_id=stream_id, **fields))

    async def push_and_pick(self, *chunks: bytes, **fields: object) -> pb.PickResponse:
        """Push *chunks*, or the usual body, and pick."""
        pushed = await self.push(*(chunks or (PROMPT,)))
        return await self.pick(pushed.stream_id, **fields)

    async def pull_chunks(self, response_id: int) -> list[bytes]:
        """Pull to the end."""
        pull = self.stub.PullBody(pb.PullBodyRequest(response_id=response_id))
        return [message.chunk async for message in pull]

    async def pull(self, response_id: int) -> bytes:
        """Pull the whole body."""
        return b"".join(await self.pull_chunks(response_id))

    async def first(self, response_id: int, **fields: object) -> bool:
        """Report a first token."""
        request = pb.ReportFirstTokenRequest(response_id=response_id, **fields)
        return (await self.stub.ReportFirstToken(request)).acknowledged

    async def final(self, response_id: int, **fields: object) -> bool:
        """Report a final token."""
        request = pb.ReportFinalTokenRequest(response_id=response_id, **fields)
        return (await self.stub.ReportFinalToken(request)).acknowledged

    async def abort(self, response_id: int, **fields: object) -> bool:
        """Abort."""
        request = pb.AbortRequest(response_id=response_id, **fields)
        return (await self.stub.Abort(request)).released


async def messages(chunks: Iterable[bytes]) -> AsyncIterator[pb.BodyChunk]:
    """Yield *chunks* as messages."""
    for chunk in chunks:
        yield pb.BodyChunk(chunk=chunk)


@asynccontextmanager
async def serve_picker(
    settings: PickerSettings = SMALL,
    *,
    clock: Clock | None = None,
    chooser: Chooser | None = None,
    parse: PickerParseSettings | None = None,
    director: Director | None = None,
    ticks: bool = True,
) -> AsyncIterator[ServedPicker]:
    """Serve a picker on a port of its own for the length of the block.

    Args:
        settings: Its limits.
        clock: Its time; the system's if None.
        chooser: Whoever chooses; the endpoints of the settings if None.
        parse: What a body may look like.
        director: Its plugins; none if None.
        ticks: Whether it looks by itself for what is over.
    """
    recorder = Recorder()
    picker = Picker(
        PickerParts(
            settings=settings,
            parse=parse or PickerParseSettings(),
            port=GrpcSettings(),
            metrics=MetricsSettings(labels_max=10),
            clock=clock or SystemClock(),
            observer=recorder,
            log=recorder,
            chooser=chooser,
            director=no_plugins() if director is None else director,
        )
    )
    address = await picker.start()
    task = asyncio.create_task(picker.run()) if ticks else None
    try:
        options = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
        async with grpc.aio.insecure_channel(str(address), options=options) as channel:
            yield ServedPicker(
                picker=picker,
                recorder=recorder,
                target=str(address),
                stub=pb_grpc.PickerStub(channel),
                channel=channel,
            )
    finally:
        if task is not None:
            task.cancel()
        await picker.stop(0)


async def until(holds: Callable[[], bool]) -> None:
    """Let the server work until *holds* is true."""
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0)


@asynccontextmanager
async def refused(status: grpc.StatusCode) -> AsyncIterator[None]:
    """Expect the block to end in *status*."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        yield
    assert caught.value.code() is status, caught.value.details()
