"""A gateway that calls the picker by the benchmarks' light client, see ``wire.py``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.measure import require
from benchmarks.wire import WireConnection, wire_connection
from inferencecache.kinference.v1 import picker_pb2 as pb

_PUSH = "/kinference.v1.Picker/PushBody"
_PICK = "/kinference.v1.Picker/Pick"
_PULL = "/kinference.v1.Picker/PullBody"


class WireGateway:
    """Calls one picker.

    Args:
        connection: To it.
    """

    def __init__(self, connection: WireConnection) -> None:
        self._call = connection.call

    async def push(self, messages: list[bytes]) -> int:
        """Push a body of one chunk and return its stream_id."""
        (message,) = messages
        return pb.PushBodyResponse.FromString(await self._call(_PUSH, message)).stream_id

    async def pick(self, stream_id: int) -> pb.PickResponse:
        """Pick."""
        request = pb.PickRequest(body_stream_id=stream_id).SerializeToString()
        return pb.PickResponse.FromString(await self._call(_PICK, request))

    async def pull(self, picked: pb.PickResponse) -> None:
        """Pull a body of one chunk and throw it away."""
        request = pb.PullBodyRequest(response_id=picked.response_id).SerializeToString()
        chunk = await self._call(_PULL, request)
        require(len(chunk) >= picked.body_total_bytes, "the whole body came back")


@asynccontextmanager
async def wire_gateway(target: str) -> AsyncIterator[WireGateway]:
    """Connect to *target* for the length of the block."""
    async with wire_connection(target) as connection:
        yield WireGateway(connection)
