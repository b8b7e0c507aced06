"""The InferenceCache service: one thin method per RPC, named after it in snake case."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeGuard

import grpc

from inferencecache.clock import NS_PER_S
from inferencecache.index import StateUpdate
from inferencecache.service import CachePlane, RouteAnswer, RouteRequest
from inferencecache.service.access import Access
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.transport.boundary import Boundary, FailureLog, RpcObserver
from inferencecache.transport.convert import (
    WrittenState,
    event_type_name,
    index_event,
    route_response,
    state_response_steps,
)
from inferencecache.transport.drive import Completer, drive
from inferencecache.transport.grpc_access import OpenGuard, TenantGuard, require, require_any
from inferencecache.transport.long_lookups import LongLookups
from inferencecache.transport.lookup_stages import LookupStages
from inferencecache.transport.read_lookup import read_long_request, read_route_request
from inferencecache.transport.read_report import ReportReader
from inferencecache.transport.rpc_table import RpcHandler, rpc_handlers
from inferencecache.types import ReasonCode
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

_ACCEPTED: Final = pb.Ack(accepted=True)
"""Made once: every event and every stream ends in it."""

SERVICE: Final = pb.DESCRIPTOR.services_by_name["InferenceCache"]

Context = grpc.aio.ServicerContext[Any, Any]
Reader = Callable[[bytes], RouteRequest | None]
Writer = Callable[[RouteAnswer], pb.LookupRouteResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerParts:
    """What the handler works with.

    Attributes:
        plane: The cache plane.
        observer: Counts what arrives and what goes wrong.
        failures: Records unexpected exceptions.
        settings: What is read in one go, and how much one update may carry.
        guard: Decides which tenants a caller may use.
        stages: Times what surrounds a lookup.
    """

    plane: CachePlane
    observer: RpcObserver
    failures: FailureLog
    stages: LookupStages
    settings: GrpcSettings = field(default_factory=GrpcSettings)
    guard: TenantGuard = field(default_factory=OpenGuard)


class CacheHandler:
    """Answers the service's RPCs: convert, call the plane, convert back.

    LookupRoute reads its own bytes and guards itself, because its callers must never see an error;
    the others run inside the boundary.

    Args:
        parts: Its collaborators.
    """

    def __init__(self, parts: HandlerParts) -> None:
        self._plane = parts.plane
        self._observer = parts.observer
        self._failures = parts.failures
        self._guard = parts.guard
        self._reports = ReportReader(parts.settings)
        self._completer = Completer()
        self._long = LongLookups(parts.plane)
        self._stages = parts.stages
        timed = parts.stages.timed
        read = partial(read_route_request, blocks_max=parts.plane.blocks_read_max)
        self._untimed = read, route_response
        self._timed = partial(timed, "read", read), partial(timed, "write", route_response)

    async def lookup_route(self, data: bytes, context: Context) -> pb.LookupRouteResponse:
        """Answer which replicas are warm; whatever happens, without an error."""
        read, write = self._timed if self._stages.is_due() else self._untimed
        request = answer = None
        try:
            if len(data) > self._long.read_at_once_bytes:
                answer = await self._answer_long(data, context)
            elif self._may_ask(request := read(data), context):
                deadline_ns = self._deadline(context)
                answer = self._plane.answer_sent(request, deadline_ns)
                answer = answer or await self._long.derive(request, deadline_ns)
        except Exception as error:  # noqa: BLE001 - a gateway must never pay for our failure
            self._failures.failed("LookupRoute", error)
        return self._written(self._no_hint(request) if answer is None else answer, write)

    async def report_cache_state(
        self, request_iterator: AsyncIterable[bytes], context: Context
    ) -> pb.Ack:
        """Apply each update of the stream before the next is read."""
        require_any(self._guard, "ReportCacheState", context, Access.WRITE)
        async for data in request_iterator:
            update = await self._reports.read(data)
            if update is None:
                self._observer.message_unparsable("ReportCacheState")
            else:
                need = (Access.WRITE, update.tenant_id)
                require(self._guard, "ReportCacheState", context, need)
                await self._completer.run(self._applied(update))
        # A stream that was reset ends like one that was closed; what it brought stays, and the
        # acknowledgement goes nowhere.
        return _ACCEPTED

    async def publish_event(self, request: pb.CacheEvent, context: Context) -> pb.Ack:
        """Apply one event; one that means nothing here is acknowledged all the same."""
        require(self._guard, "PublishEvent", context, (Access.WRITE, request.tenant_id))
        self._observer.event_received(event_type_name(request))
        event = index_event(request)
        if event is not None:
            self._plane.publish(event)
        return _ACCEPTED

    async def get_cache_state(
        self, request: pb.GetCacheStateRequest, context: Context
    ) -> WrittenState:
        """Show what is known of one (tenant, model)."""
        require(self._guard, "GetCacheState", context, (Access.READ, request.tenant_id))
        steps = self._plane.cache_state_slices(request.tenant_id, request.model_id)
        return await drive(state_response_steps(await drive(steps)))

    async def lookup_pd_route(
        self, _request: pb.LookupPDRouteRequest, _context: Context
    ) -> pb.LookupPDRouteResponse:
        """Answer that nothing is known about splitting prefill and decode."""
        return pb.LookupPDRouteResponse(reason_code=ReasonCode.NO_HINT)

    async def render_template(
        self, _request: pb.RenderTemplateRequest, _context: Context
    ) -> pb.RenderTemplateResponse:
        """Answer that there is no such template: there are none."""
        return pb.RenderTemplateResponse(reason_code="TEMPLATE_NOT_FOUND")

    def stream_cache_events(
        self, _request: pb.StreamEventsRequest, _context: Context
    ) -> AsyncIterator[pb.CacheEvent]:
        """Refuse: this server keeps no stream of events."""
        raise NotImplementedError("this server does not stream events")

    def stream_metrics(
        self, _request: pb.StreamMetricsRequest, _context: Context
    ) -> AsyncIterator[pb.Metric]:
        """Refuse: metrics are scraped over HTTP."""
        raise NotImplementedError("this server does not stream metrics; scrape /metrics")

    @property
    def lookups_waiting(self) -> int:
        """Long lookups that wait for their turn."""
        return self._long.waiting

    async def finish(self) -> None:
        """Wait until every update that has begun is applied."""
        await self._completer.finish()

    def _may_ask(self, request: RouteRequest | None, context: Context) -> TypeGuard[RouteRequest]:
        if request is None:
            self._observer.message_unparsable("LookupRoute")
            return False
        return self._guard.allows("LookupRoute", context, Access.READ, request.tenant_id)

    async def _answer_long(self, data: bytes, context: Context) -> RouteAnswer:
        read_allowed = partial(self._read_allowed, context)
        return await self._long.answer(data, self._deadline(context), read_allowed)

    def _read_allowed(
        self, context: Context, data: bytes
    ) -> Generator[None, None, RouteRequest | RouteAnswer]:
        request = yield from read_long_request(data, self._plane.lookup_settings)
        return request if self._may_ask(request, context) else self._no_hint(request)

    def _written(self, answer: RouteAnswer, write: Writer) -> pb.LookupRouteResponse:
        """Return *answer*, which is counted already, as a message."""
        try:
            return write(answer)
        except Exception as error:  # noqa: BLE001 - a gateway must never pay for our failure
            self._failures.failed("LookupRoute", error)
        return pb.LookupRouteResponse(reason_code=ReasonCode.NO_HINT)

    def _applied(self, update: StateUpdate) -> Iterator[None]:
        """Apply *update* in slices and count it at the end, whoever still waits for it."""
        yield from self._plane.report_slices(update)
        lag_ns = self._plane.clock.now_ns() - update.timestamp_ns if update.timestamp_ns else None
        self._observer.update_received(update.entries, lag_ns)

    def _deadline(self, context: Context) -> int | None:
        """Return the monotonic time at which the caller stops waiting, or None."""
        remaining_s = context.time_remaining()
        if remaining_s is None:
            return None
        return self._plane.clock.monotonic_ns() + int(remaining_s * NS_PER_S)

    def _no_hint(self, request: RouteRequest | None) -> RouteAnswer:
        """Return an answer that says nothing, and count it."""
        model_id = "" if request is None else request.model_id
        self._plane.observer.lookup_finished(model_id, ReasonCode.NO_HINT, 0, hint_used=False)
        return RouteAnswer(ReasonCode.NO_HINT, (), "", (), 0)


def cache_rpc_handlers(handler: CacheHandler, boundary: Boundary) -> dict[str, RpcHandler]:
    """Return the handlers of the InferenceCache service."""
    return rpc_handlers(
        SERVICE,
        handler,
        boundary,
        unguarded={"LookupRoute"},
        readers={"LookupRoute": bytes, "ReportCacheState": bytes},
    )
