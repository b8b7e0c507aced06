"""Tell whoever asks whether the server and its services can be used.

The library's own servicer writes to a watcher while it holds what every change of a status needs:
one watcher that does not read would keep all others from hearing anything, and the server from
ending. Here nobody waits for a watcher, but who is about to end connections, and not for long.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2

from inferencecache.transport.boundary import Context
from inferencecache.transport.deserialize import lenient
from inferencecache.transport.rpc_table import RpcHandler

_REQUEST_BYTES_MAX: Final = 65_536
"""No service has a name as long as that."""

_Status = health_pb2.HealthCheckResponse


class HealthBoard:
    """Shows which services can be used; the empty name is that of the server."""

    def __init__(self) -> None:
        self._statuses: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._watchers: set[Context] = set()
        self._untold: set[Context] = set()
        self._all_told = asyncio.Event()

    def show(self, service: str, *, is_serving: bool) -> None:
        """Show *service* as SERVING or NOT_SERVING from now on."""
        self._statuses[service] = _Status.SERVING if is_serving else _Status.NOT_SERVING
        self._untold |= self._watchers
        self._changed.set()
        self._changed = asyncio.Event()

    async def told(self, limit_s: float) -> None:
        """Wait until all who watch have been told how things are, at most *limit_s* seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while self._untold:
                    self._all_told.clear()
                    await self._all_told.wait()

    def handlers(self) -> dict[str, RpcHandler]:
        """Return what serves the methods of the health service."""
        asked = lenient(health_pb2.HealthCheckRequest, _REQUEST_BYTES_MAX)
        listed = lenient(health_pb2.HealthListRequest, _REQUEST_BYTES_MAX)
        one, several = _Status.SerializeToString, health_pb2.HealthListResponse.SerializeToString
        return {
            "Check": grpc.unary_unary_rpc_method_handler(self._check, asked, one),
            "Watch": grpc.unary_stream_rpc_method_handler(self._watch, asked, one),
            "List": grpc.unary_unary_rpc_method_handler(self._list, listed, several),
        }

    async def _check(self, request: Any, context: Context) -> object:  # noqa: ANN401 - untyped
        await _refuse_unparsable("Check", request, context)
        status = self._statuses.get(request.service)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "Check: nothing of this name is served")
        return _Status(status=status)

    async def _watch(
        self,
        request: Any,  # noqa: ANN401 - the same
        context: Context,
    ) -> AsyncIterator[object]:
        """Yield the status, and each one that it becomes; of those in between the last."""
        await _refuse_unparsable("Watch", request, context)
        self._watchers.add(context)
        self._untold.add(context)
        try:
            told = None
            while True:
                changed = self._changed
                status = self._statuses.get(request.service, _Status.SERVICE_UNKNOWN)
                if status != told:
                    told = status
                    yield _Status(status=status)
                else:
                    self._note_told(context)
                    await changed.wait()
        finally:
            self._watchers.discard(context)
            self._note_told(context)

    def _note_told(self, watcher: Context) -> None:
        self._untold.discard(watcher)
        if not self._untold:
            self._all_told.set()

    async def _list(self, request: object, context: Context) -> object:
        await _refuse_unparsable("List", request, context)
        statuses = {name: _Status(status=status) for name, status in self._statuses.items()}
        return health_pb2.HealthListResponse(statuses=statuses)


async def _refuse_unparsable(method: str, request: object, context: Context) -> None:
    if request is None:
        await context.abort(
            grpc.StatusCode.INVALID_ARGUMENT, f"{method}: the request is not a valid message"
        )
