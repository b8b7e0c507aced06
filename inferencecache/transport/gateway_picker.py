"""Call the picker the way a gateway has to: one connection, deadlines, bounded chunks."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import grpc
import grpc.aio

from inferencecache.clock import NS_PER_S
from inferencecache.errors import InferenceCacheError
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.kinference.v1.picker_pb2_grpc import PickerStub
from inferencecache.settings.client import ClientSettings
from inferencecache.settings.gateway import GatewayPickerSettings
from inferencecache.transport.client_channel import open_async_channel
from inferencecache.transport.lookup_client import is_cancelled_from_outside

Metadata = Sequence[tuple[str, str]]

_Answer = TypeVar("_Answer")

_DECLARED_LENGTH: Final = "kinference-declared-length"
_REQUEST_ID: Final = "kinference-client-request-id"
_DOWN: Final = frozenset({"UNAVAILABLE", "UNIMPLEMENTED", "UNKNOWN", "INTERNAL", "CANCELLED"})
_STALE: Final = frozenset({"NOT_FOUND", "FAILED_PRECONDITION"})


class PickerCallError(InferenceCacheError):
    """A call ended without an answer.

    Args:
        method: Which call.
        status: Its gRPC status.
        detail: What the picker said.
    """

    def __init__(self, method: str, status: str, detail: str) -> None:
        super().__init__(f"{method}: {status}: {detail}")
        self.method = method
        self.status = status
        self.detail = detail

    @property
    def is_down(self) -> bool:
        """Whether there is no picker to speak of."""
        is_slow = self.status == "DEADLINE_EXCEEDED" and self.method == "Pick"
        return self.status in _DOWN or is_slow

    @property
    def is_stale(self) -> bool:
        """Whether the picker does not know the request: any more, or because it is another one."""
        return self.status in _STALE


@dataclass(frozen=True, slots=True, kw_only=True)
class PickFacts:
    """What the picker is told of a request.

    Attributes:
        request_id: Its name.
        tenant: Whose it is; empty where that is not known.
        qos: How long it can wait, as the proto names it.
        metadata: What plugins see.
    """

    request_id: str
    tenant: str
    qos: str
    metadata: Metadata = ()


class PickerClient:
    """Calls one picker over one connection; made within a running loop.

    Args:
        settings: Where it is, and how long it may take.
        credentials: TLS; None means plaintext.
        upload_ns: Longest time in which a body arrives.
    """

    def __init__(
        self,
        settings: GatewayPickerSettings,
        credentials: grpc.ChannelCredentials | None,
        upload_ns: int,
    ) -> None:
        connection = ClientSettings(connect_timeout_ns=settings.connect_timeout_ns)
        self._channel = open_async_channel(settings.target, connection, credentials)
        self._stub = PickerStub(self._channel)
        self._pick_s = settings.pick_timeout_ns / NS_PER_S
        self._pull_s = settings.pull_timeout_ns / NS_PER_S
        self._report_s = settings.report_timeout_ns / NS_PER_S
        self._upload_s = upload_ns / NS_PER_S
        self._pool = _pool(settings.pool)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known; asking makes one."""
        state = self._channel.get_state(try_to_connect=True)
        return state is grpc.ChannelConnectivity.READY

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()

    async def push(
        self, chunks: AsyncIterator[bytes], request_id: str, declared_bytes: int | None
    ) -> int:
        """Hand a body over as it arrives; return its stream id.

        Args:
            chunks: The body, none of them above 1 MiB.
            request_id: For logs.
            declared_bytes: Its length, if known.

        Raises:
            PickerCallError: The picker does not take it.
        """
        metadata = [(_REQUEST_ID, request_id)]
        if declared_bytes is not None:
            metadata.append((_DECLARED_LENGTH, str(declared_bytes)))
        call = self._stub.PushBody(metadata=metadata, timeout=self._upload_s)
        is_done = False
        try:
            async for chunk in chunks:
                await self._write(call, chunk)
            pushed = await self._end(call)
            is_done = True
        finally:
            if not is_done:
                call.cancel()
        return int(pushed.stream_id)

    async def pick(self, stream_id: int, facts: PickFacts) -> pb.PickResponse:
        """Ask where the body should go.

        Raises:
            PickerCallError: There is no answer.
        """
        request = pb.PickRequest(
            body_stream_id=stream_id,
            client_request_id=facts.request_id,
            inference_pool=self._pool,
            qos_class=pb.PickRequest.QosClass.Value(facts.qos),
            tenant=facts.tenant,
        )
        async with _calling("Pick"):
            picked = await self._stub.Pick(
                request, metadata=tuple(facts.metadata), timeout=self._pick_s
            )
        return _parsed("Pick", picked)

    def pull(self, response_id: int) -> "Pull":
        """Ask for the body; it comes as it is read."""
        request = pb.PullBodyRequest(response_id=response_id)
        return Pull(self._stub.PullBody(request, timeout=self._pull_s))

    async def report(self, request: "Report") -> bool:
        """Report; return whether the picker took it for news.

        Raises:
            PickerCallError: There is no answer.
        """
        method = method_of(request)
        async with _calling(method):
            if isinstance(request, pb.ReportFirstTokenRequest):
                first = await self._stub.ReportFirstToken(request, timeout=self._report_s)
                return _parsed(method, first).acknowledged
            if isinstance(request, pb.ReportFinalTokenRequest):
                final = await self._stub.ReportFinalToken(request, timeout=self._report_s)
                return _parsed(method, final).acknowledged
            aborted = await self._stub.Abort(request, timeout=self._report_s)
            return _parsed(method, aborted).released

    async def _write(self, call: Any, chunk: bytes) -> None:  # noqa: ANN401 - the library's own class
        """Write one chunk, at the pace of the picker.

        Raises:
            PickerCallError: The call is over, or the picker takes nothing for too long.
        """
        try:
            async with _calling("PushBody"), asyncio.timeout(self._pick_s):
                await call.write(pb.BodyChunk(chunk=chunk))
        except TimeoutError:
            raise PickerCallError("PushBody", "UNAVAILABLE", "nothing is read") from None
        except asyncio.InvalidStateError:
            await self._end(call, is_over=True)

    async def _end(self, call: Any, *, is_over: bool = False) -> pb.PushBodyResponse:  # noqa: ANN401 - the same
        """Return the answer to the whole body.

        Raises:
            PickerCallError: There is none.
        """
        try:
            async with _calling("PushBody"), asyncio.timeout(self._pick_s):
                if not is_over:
                    await call.done_writing()
                pushed: pb.PushBodyResponse = await call
        except TimeoutError:
            raise PickerCallError("PushBody", "UNAVAILABLE", "no answer") from None
        if is_over:
            raise PickerCallError("PushBody", "UNKNOWN", "an answer before the end of the body")
        return _parsed("PushBody", pushed)


class Pull:
    """A body on its way back.

    Args:
        call: The call.
    """

    def __init__(self, call: Any) -> None:  # noqa: ANN401 - the library's own class
        self._call = call

    async def next(self) -> bytes | None:
        """Return the next chunk, None at the end.

        Raises:
            PickerCallError: The call ended early.
        """
        async with _calling("PullBody"):
            message = await self._call.read()
        return None if message is grpc.aio.EOF else _parsed("PullBody", message).chunk

    def close(self) -> None:
        """End the call, if it has not ended."""
        self._call.cancel()


Report = pb.ReportFirstTokenRequest | pb.ReportFinalTokenRequest | pb.AbortRequest


def method_of(request: Report) -> str:
    """Return the call that takes *request*."""
    return type(request).__name__.removesuffix("Request")


@asynccontextmanager
async def _calling(method: str) -> AsyncIterator[None]:
    """Turn what the library raises within the block into a failed call."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise PickerCallError(method, error.code().name, error.details() or "") from None
    except asyncio.CancelledError:
        if is_cancelled_from_outside():
            raise
        raise PickerCallError(method, "CANCELLED", "the call has ended") from None


def _parsed(method: str, answer: _Answer | None) -> _Answer:
    """Return *answer*, in place of which the library gives None where it does not parse.

    Raises:
        PickerCallError: It does not.
    """
    if answer is None:
        raise PickerCallError(method, "INTERNAL", "the answer is no valid message")
    return answer


def _pool(text: str) -> pb.InferencePoolRef | None:
    """Return the pool that a setting names, None for none."""
    if not text:
        return None
    namespace, _, name = text.rpartition("/")
    return pb.InferencePoolRef(namespace=namespace, name=name)
