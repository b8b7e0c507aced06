"""The gRPC listener of the cache plane: the InferenceCache service, and others beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import grpc

from inferencecache.service import CachePlane
from inferencecache.settings.address import BindAddress
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.transport.boundary import Boundary, FailureLog, RpcObserver
from inferencecache.transport.cache_handler import (
    SERVICE,
    CacheHandler,
    HandlerParts,
    cache_rpc_handlers,
)
from inferencecache.transport.grpc_access import OpenGuard, TenantGuard
from inferencecache.transport.grpc_port import GrpcPort, RpcHandlers
from inferencecache.transport.lookup_stages import LookupStages
from inferencecache.transport.structured_log import EventLog


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcParts:
    """What the listener serves and how.

    Attributes:
        plane: The cache plane.
        observer: Counts what arrives and what goes wrong.
        log: Where unexpected failures are reported.
        settings: Address, limits, keepalive.
        credentials: Server credentials; None serves plaintext.
        services: Further services by full name; their health is shown with the others'.
        guard: Decides which tenants a caller may use.
    """

    plane: CachePlane
    observer: RpcObserver
    log: EventLog
    settings: GrpcSettings = field(default_factory=GrpcSettings)
    credentials: grpc.ServerCredentials | None = None
    services: Mapping[str, RpcHandlers] = field(default_factory=dict)
    guard: TenantGuard = field(default_factory=OpenGuard)


class GrpcListener:
    """Serves the gRPC services on one address.

    Args:
        parts: What to serve and how.

    Attributes:
        stages: Times what surrounds a lookup.
    """

    def __init__(self, parts: GrpcParts) -> None:
        self._parts = parts
        self.stages = LookupStages(parts.plane.clock, parts.settings.stage_sample_interval)
        settings, observer = parts.settings, parts.observer
        failures = FailureLog(
            observer, parts.log, parts.plane.clock, settings.failure_log_interval_ns
        )
        self._handler = CacheHandler(
            HandlerParts(
                plane=parts.plane,
                observer=observer,
                failures=failures,
                settings=settings,
                guard=parts.guard,
                stages=self.stages,
            )
        )
        boundary = Boundary(observer, failures, settings.parse_bytes_max)
        own = cache_rpc_handlers(self._handler, boundary)
        services: dict[str, RpcHandlers] = {SERVICE.full_name: own, **parts.services}
        self._port = GrpcPort(settings, services, parts.credentials)

    async def start(self) -> BindAddress:
        """Listen and serve.

        Returns:
            The address in use, with its real port.

        Raises:
            ListenError: The address cannot be had.
            StartError: The gRPC core does not take the certificate.
        """
        return await self._port.start()

    async def set_serving(self, *, is_serving: bool) -> None:
        """Show SERVING or NOT_SERVING for the server and each of its services."""
        await self._port.set_serving(is_serving=is_serving)

    async def withhold(self, service: str, *, is_withheld: bool) -> None:
        """Show *service* as NOT_SERVING for as long as it is not ready, whatever the others are."""
        await self._port.withhold(service, is_withheld=is_withheld)

    async def end_connections(self) -> int:
        """Make all clients connect again; return how many there were."""
        return await self._port.end_connections()

    async def stop(self, grace_s: float) -> None:
        """Let streams and calls end, then cut off the rest; new ones learn UNAVAILABLE.

        Args:
            grace_s: Longest wait for them, in seconds.
        """
        await self._port.stop(grace_s)
        await self._handler.finish()
