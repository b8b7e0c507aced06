"""The InferenceCache service: one thin method per RPC, named after it in snake case."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeGuard

import grpc

from inferencecache.clock import NS_PER_S
from inferencecache.index import StateUpdate
from inferencecache.service import CachePlane, RouteAnswer, RouteRequest, RouteSteps
from inferencecache.service.access import Access
from inferencecache.transport.boundary import Boundary, FailureLog, RpcObserver
from inferencecache.transport.convert import (
    event_type_name,
    index_event,
    route_response,
    state_response,
    update_at_once,
    update_steps,
)
from inferencecache.transport.convert_report import SINGLE_ENTRIES
from inferencecache.transport.drive import Completer, drive, drive_lookup
from inferencecache.transport.grpc_access import OpenGuard, TenantGuard, require, require_any
from inferencecache.transport.lookup_stages import LookupStages
from inferencecache.transport.lookup_turns import LookupTurn, LookupTurns
from inferencecache.transport.read_lookup import read_names, read_route_request
from inferencecache.transport.rpc_table import RpcHandler, rpc_handlers
from inferencecache.transport.wire_update import WireUpdate, read_update
from inferencecache.types import ReasonCode
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

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
        ingest_slice_entries: Entries of an update read before the loop gets its turn.
        guard: Decides which tenants a caller may use.
        stages: Times what surrounds a lookup.
    """

    plane: CachePlane
    observer: RpcObserver
    failures: FailureLog
    ingest_slice_entries: int
    stages: LookupStages
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
        self._slice_entries = parts.ingest_slice_entries
        self._completer = Completer()
        lookup = parts.plane.lookup_settings
        self._long_bytes = lookup.long_message_bytes
        self._turns = LookupTurns(parts.plane.clock, lookup.waiting_max)
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
            if len(data) > self._long_bytes:
                return self._written(await self._answer_long(data, context, read), write)
            request = read(data)
            if self._may_ask(request, context):
                deadline_ns = self._deadline(context)
                answer = self._plane.answer_sent(request, deadline_ns)
                if answer is None:
                    answer = await self._derive(request, deadline_ns)
        except Exception as error:  # noqa: BLE001 - a gateway must never pay for our failure
            self._failures.failed("LookupRoute", error)
        return self._written(self._no_hint(request) if answer is None else answer, write)

    async def report_cache_state(
        self, request_iterator: AsyncIterable[WireUpdate | None], context: Context
    ) -> pb.Ack:
        """Apply each update of the stream before the next is read."""
        require_any(self._guard, "ReportCacheState", context, Access.WRITE)
        async for message in request_iterator:
            if message is None:
                self._observer.message_unparsable("ReportCacheState")
            else:
                need = (Access.WRITE, message.tenant_id)
                require(self._guard, "ReportCacheState", context, need)
                await self._apply(message)
        # A stream that was reset ends like one that was closed; what it brought stays, and the
        # acknowledgement goes nowhere.
        return pb.Ack(accepted=True)

    async def publish_event(self, request: pb.CacheEvent, context: Context) -> pb.Ack:
        """Apply one event; one that means nothing here is acknowledged all the same."""
        require(self._guard, "PublishEvent", context, (Access.WRITE, request.tenant_id))
        self._observer.event_received(event_type_name(request))
        event = index_event(request)
        if event is not None:
            self._plane.publish(event)
        return pb.Ack(accepted=True)

    async def get_cache_state(
        self, request: pb.GetCacheStateRequest, context: Context
    ) -> pb.GetCacheStateResponse:
        """Show what is known of one (tenant, model)."""
        require(self._guard, "GetCacheState", context, (Access.READ, request.tenant_id))
        steps = self._plane.cache_state_slices(request.tenant_id, request.model_id)
        return state_response(await drive(steps))

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

    async def finish(self) -> None:
        """Wait until every update that has begun is applied."""
        await self._completer.finish()

    def _may_ask(self, request: RouteRequest | None, context: Context) -> TypeGuard[RouteRequest]:
        if request is None:
            self._observer.message_unparsable("LookupRoute")
            return False
        return self._guard.allows("LookupRoute", context, Access.READ, request.tenant_id)

    async def _derive(self, request: RouteRequest, deadline_ns: int | None) -> RouteAnswer:
        """Answer a lookup that takes more than a step; few are like that."""
        started_ns = self._plane.clock.monotonic_ns()
        steps = self._plane.lookup_route_steps(request, deadline_ns)
        return await self._in_turn(steps, request, deadline_ns, started_ns)

    async def _answer_long(self, data: bytes, context: Context, read: Reader) -> RouteAnswer:
        """Answer a lookup that already takes long to read: it is read in its turn."""
        started_ns = self._plane.clock.monotonic_ns()
        names = read_names(data) or RouteRequest()
        deadline_ns = self._deadline(context)
        steps = self._long_steps(data, context, read, (names, deadline_ns, started_ns))
        return await self._in_turn(steps, names, deadline_ns, started_ns)

    def _long_steps(
        self,
        data: bytes,
        context: Context,
        read: Reader,
        known: tuple[RouteRequest, int | None, int],
    ) -> RouteSteps:
        """Read a lookup in a slice of its own, and answer it.

        Args:
            data: The message.
            context: Of the call.
            read: Reads it.
            known: Its names, its caller's deadline, and when it came.
        """
        names, deadline_ns, started_ns = known
        if (yield None):
            return self._plane.turn_away(names, started_ns, is_late=True)
        request = read(data)
        if not self._may_ask(request, context):
            return self._no_hint(request)
        if (yield None):
            return self._plane.turn_away(request, started_ns, is_late=True)
        return (
            yield from self._plane.lookup_route_steps(request, deadline_ns, started_ns=started_ns)
        )

    async def _in_turn(
        self, steps: RouteSteps, names: RouteRequest, deadline_ns: int | None, started_ns: int
    ) -> RouteAnswer:
        """Return the answer of *steps*, or one that says nothing where too many wait already."""
        ends_ns = self._plane.lookup_deadline_ns(names, deadline_ns, started_ns)
        answer = await drive_lookup(steps, LookupTurn(self._turns, ends_ns))
        if answer is None:
            answer = self._plane.turn_away(names, started_ns, is_late=False)
        return answer

    def _written(self, answer: RouteAnswer, write: Writer) -> pb.LookupRouteResponse:
        """Return *answer*, which is counted already, as a message."""
        try:
            return write(answer)
        except Exception as error:  # noqa: BLE001 - a gateway must never pay for our failure
            self._failures.failed("LookupRoute", error)
        return pb.LookupRouteResponse(reason_code=ReasonCode.NO_HINT)

    async def _apply(self, message: WireUpdate) -> None:
        if len(message.prefixes) < SINGLE_ENTRIES:
            update = update_at_once(message)
        else:
            update = await drive(update_steps(message, self._slice_entries))
        if update is None:
            self._observer.message_unparsable("ReportCacheState")
            return
        await self._completer.run(self._applied(update))

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
        readers={"LookupRoute": bytes, "ReportCacheState": read_update},
    )
