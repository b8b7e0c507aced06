"""The server under test: the real listener with the real plane, and empty handlers beside it.

Like ``inferencecache serve`` with default settings, on uvloop and a free loopback port, without
the HTTP pages. The empty handlers take the same bytes, parse nothing and answer nothing: the
difference is what a lookup, a report or an event costs above gRPC itself. Its first argument is the
cap; with ``--steps`` it also times the steps of its handlers. Prints its address.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

import grpc
import uvloop

from benchmarks.messages import EMPTY_SERVICE, STEPS_SERVICE, as_bytes
from benchmarks.step_trace import StepTrace
from inferencecache.app.collector import calm_collector
from inferencecache.app.upkeep import Upkeep
from inferencecache.index import PrefixIndex
from inferencecache.policy import PolicyStore
from inferencecache.service import CachePlane, PlaneParts
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport.cache_handler import CacheHandler
from inferencecache.transport.grpc_server import GrpcListener, GrpcParts
from inferencecache.transport.prometheus import ServerMetrics
from inferencecache.transport.structured_log import StructuredLog
from inferencecache.transport.system_clock import SystemClock


async def empty(request: bytes, context: object) -> bytes:  # noqa: ARG001 - a handler's shape
    """Answer nothing."""
    return b""


async def empty_stream(requests: AsyncIterator[bytes], context: object) -> bytes:  # noqa: ARG001 - a handler's shape
    """Take all that comes, and answer nothing."""
    async for _ in requests:
        pass
    return b""


async def serve(entries_max: int, *, with_steps: bool = False) -> None:
    """Serve until the process is terminated.

    Args:
        entries_max: The index's cap.
        with_steps: Whether to time the handlers' steps.
    """
    trace = StepTrace()
    for method in ("lookup_route", "report_cache_state", "publish_event") if with_steps else ():
        trace.follow(CacheHandler, method)
    settings = throwaway_server_settings(index=IndexSettings(entries_max=entries_max))
    clock = SystemClock()
    policies = PolicyStore(settings.policy, default_ttl_ns=settings.index.ttl_ns)
    index = PrefixIndex(settings.index, policies)
    metrics = ServerMetrics(settings.metrics, index)
    plane = CachePlane(
        PlaneParts(
            index=index,
            policies=policies,
            clock=clock,
            lookup=settings.lookup,
            ranking=settings.ranking,
            observer=metrics.lookups,
        )
    )
    calls = {EMPTY_SERVICE: empty, STEPS_SERVICE: trace.take}
    services = {
        name: {"Call": grpc.unary_unary_rpc_method_handler(call, as_bytes, as_bytes)}
        for name, call in calls.items()
    }
    services[EMPTY_SERVICE]["Stream"] = grpc.stream_unary_rpc_method_handler(
        empty_stream, as_bytes, as_bytes
    )
    listener = GrpcListener(
        GrpcParts(
            plane=plane,
            observer=metrics,
            log=StructuredLog(),
            settings=settings.grpc,
            services=services,
        )
    )
    upkeep = Upkeep(settings=settings, plane=plane, metrics=metrics, clock=clock)
    address = await listener.start()
    calm_collector()
    print(address, flush=True)
    await asyncio.gather(*upkeep.tasks().values())


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), with_steps="--steps" in sys.argv))
