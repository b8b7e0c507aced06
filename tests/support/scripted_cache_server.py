"""A cache server that answers as a test tells it, over a real socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import grpc
import grpc.aio
from own_ports import own_target

from inferencecache.transport.client_channel import SERVICE_NAME
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

Context = grpc.aio.ServicerContext
Answer = pb.LookupRouteResponse
Route = Callable[[pb.LookupRouteRequest, Context], Awaitable[Answer]]
Acked = pb.Ack | bytes
"""An Ack, or what is sent in its place."""
OnReport = Callable[[AsyncIterator[pb.CacheStateUpdate], Context], Awaitable[Acked]]
NO_MESSAGE = b"\xff"


def answer(reason_code: str, *replica_ids: str, adapter_id: str = "") -> Route:
    """Return a route that always gives the same answer."""
    scores = [
        pb.ReplicaScore(
            replica_id=replica_id,
            score=10.0 - rank,
            matched_tokens=64,
            estimated_cache_hit_prob=0.5,
            tier=pb.CACHE_TIER_T1,
        )
        for rank, replica_id in enumerate(replica_ids)
    ]
    response = Answer(
        replica_scores=scores, reason_code=reason_code, adapter_id=adapter_id, lookup_latency_us=7
    )

    async def route(request: pb.LookupRouteRequest, context: Context) -> Answer:
        return response

    return route


def abort(status: grpc.StatusCode, details: str = "scripted") -> Route:
    """Return a route that ends every call with *status*."""

    async def route(request: pb.LookupRouteRequest, context: Context) -> Answer:
        await context.abort(status, details)
        raise AssertionError("abort raises")

    return route


class ScriptedServer:
    """Keeps every message it gets, in order; answers lookups with :attr:`route`."""

    def __init__(self) -> None:
        self.route: Route = answer("NO_HINT")
        self.lookups: list[pb.LookupRouteRequest] = []
        self.log: list[str] = []
        self.ack: Acked = pb.Ack(accepted=True)
        self.acks_after: int | None = None
        self.on_report: OnReport | None = None
        self.event_status: grpc.StatusCode | None = None
        self.entered = asyncio.Event()
        self.released = asyncio.Event()
        self.target = ""
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers([self._handlers()])

    async def start(self, target: str = "") -> None:
        """Listen, on a port of its own unless told otherwise: another may follow it there."""
        port = self._server.add_insecure_port(target or own_target())
        self.target = f"127.0.0.1:{port}"
        await self._server.start()

    async def kill(self) -> None:
        """Stop at once; calls under way break off."""
        await self._server.stop(None)

    async def hang(self, _request: object, _context: object) -> Answer:
        """Be a route that answers only after :attr:`released` is set."""
        self.entered.set()
        await self.released.wait()
        return Answer(reason_code="NO_HINT")

    async def look_up(self, request: pb.LookupRouteRequest, context: Context) -> Answer:
        """Answer by script."""
        self.lookups.append(request)
        return await self.route(request, context)

    async def report(self, updates: AsyncIterator[pb.CacheStateUpdate], context: Context) -> Acked:
        """Note each update; with :attr:`acks_after` set, end after so many."""
        if self.on_report is not None:
            return await self.on_report(updates, context)
        self.log.append("open")
        taken = 0
        async for update in updates:
            self.entered.set()
            taken += 1
            names = ",".join(p.prefix_hash.decode() for p in update.prefixes)
            self.log.append(f"report {update.replica_id} {names}".rstrip())
            if self.acks_after is not None and taken >= self.acks_after:
                return self.ack
        self.log.append("ack")
        return self.ack

    async def publish(self, event: pb.CacheEvent, context: Context) -> Acked:
        """Note the event, or refuse it by script."""
        if self.event_status is not None:
            await context.abort(self.event_status, "scripted")
        kind = pb.CacheEvent.Type.Name(event.type)
        self.log.append(f"{kind} {event.replica_id} {event.prefix_hash.decode()}".rstrip())
        return self.ack

    def _handlers(self) -> grpc.GenericRpcHandler:
        lookup = grpc.unary_unary_rpc_method_handler(
            self.look_up, pb.LookupRouteRequest.FromString, Answer.SerializeToString
        )
        report = grpc.stream_unary_rpc_method_handler(
            self.report, pb.CacheStateUpdate.FromString, _bytes_of
        )
        publish = grpc.unary_unary_rpc_method_handler(
            self.publish, pb.CacheEvent.FromString, _bytes_of
        )
        return grpc.method_handlers_generic_handler(
            SERVICE_NAME,
            {"LookupRoute": lookup, "ReportCacheState": report, "PublishEvent": publish},
        )


def _bytes_of(acked: Acked) -> bytes:
    return acked if isinstance(acked, bytes) else acked.SerializeToString()


@asynccontextmanager
async def scripted_server() -> AsyncIterator[ScriptedServer]:
    """Run a scripted server for the length of a block."""
    server = ScriptedServer()
    await server.start()
    try:
        yield server
    finally:
        server.released.set()
        await server.kill()


@asynccontextmanager
async def resetting_server() -> AsyncIterator[str]:
    """Accept connections and reset each as soon as a byte arrives; gives the address."""

    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    server = await asyncio.start_server(reset, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with server:
        yield f"{host}:{port}"
