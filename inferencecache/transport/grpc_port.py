"""One gRPC port: any services, with health and reflection beside them.

What the options say, and why:

* Idle streams of producers must live. The C core closes a connection that pings more often than
  every five minutes without data; ``grpc.http2.min_ping_interval_without_data_ms`` and
  ``grpc.http2.max_ping_strikes`` are the two options that change it (the similarly named
  ``min_recv_ping_interval`` one does nothing).
* Dead peers must go. The server pings a silent connection and frees its streams when the answer
  does not come. How long that may take is ``grpc.http2.ping_timeout_ms``, a minute by default;
  ``grpc.keepalive_timeout_ms`` alone does not shorten it.
* Two servers must not share a port by accident, hence no ``SO_REUSEPORT``.
* A caller's metadata may be longer than the library's own 8 KiB, above which it refuses some calls
  and not others.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import SERVICE_NAME as HEALTH_SERVICE
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import SERVICE_NAME as REFLECTION_SERVICE
from grpc_reflection.v1alpha.reflection import aio as reflection_aio

from inferencecache.clock import NS_PER_MS
from inferencecache.settings.address import BindAddress
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.transport.listen import ListenError, wildcard_host
from inferencecache.transport.rpc_table import RpcHandler

REFLECTION_V1_SERVICE: Final = "grpc.reflection.v1.ServerReflection"
"""The stable name of the same protocol; newer tools ask for it first."""

RpcHandlers = Mapping[str, RpcHandler]

_COMPRESSION: Final = {
    "none": grpc.Compression.NoCompression,
    "deflate": grpc.Compression.Deflate,
    "gzip": grpc.Compression.Gzip,
}


class GrpcPort:
    """Serves services on one address.

    Args:
        settings: Address, limits, keepalive.
        services: Handlers by full name of their service.
        credentials: Server credentials; None serves plaintext.
    """

    def __init__(
        self,
        settings: GrpcSettings,
        services: Mapping[str, RpcHandlers],
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        self._settings = settings
        self._services = services
        self._credentials = credentials
        self._health = health_aio.HealthServicer()
        self._server: grpc.aio.Server | None = None

    async def start(self) -> BindAddress:
        """Listen and serve.

        Returns:
            The address in use, with its real port.

        Raises:
            ListenError: The address cannot be had.
        """
        server = _new_server(self._settings)
        for name, handlers in self._services.items():
            _register(server, name, handlers)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        _add_reflection(server, (*self._services, HEALTH_SERVICE))
        address = BindAddress.parse(self._settings.bind_address)
        port = _bind(server, address, self._credentials)
        await self.set_serving(is_serving=True)
        await server.start()
        self._server = server
        return BindAddress(host=address.host, port=port)

    async def set_serving(self, *, is_serving: bool) -> None:
        """Show SERVING or NOT_SERVING for the server and each of its services."""
        status = health_pb2.HealthCheckResponse
        for name in ("", *self._services):
            await self._health.set(name, status.SERVING if is_serving else status.NOT_SERVING)

    async def stop(self, grace_s: float) -> None:
        """Take no new calls, let running ones end, then cut off the rest.

        Args:
            grace_s: Longest wait for running calls, in seconds.
        """
        if self._server is None:
            return
        await self.set_serving(is_serving=False)
        await self._server.stop(grace_s)
        self._server = None


def _new_server(settings: GrpcSettings) -> grpc.aio.Server:
    return grpc.aio.server(
        options=(
            ("grpc.max_receive_message_length", settings.receive_bytes_max),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", settings.metadata_bytes_max),
            ("grpc.absolute_max_metadata_size", settings.metadata_bytes_max),
            ("grpc.max_concurrent_streams", settings.streams_max),
            # Calls that wait for their turn while the loop is busy must wait, not be refused.
            ("grpc.server.max_pending_requests", settings.streams_max),
            ("grpc.server.max_pending_requests_hard_limit", settings.streams_max),
            ("grpc.keepalive_time_ms", settings.keepalive_time_ns // NS_PER_MS),
            ("grpc.keepalive_timeout_ms", settings.keepalive_timeout_ns // NS_PER_MS),
            ("grpc.http2.ping_timeout_ms", settings.keepalive_timeout_ns // NS_PER_MS),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            (
                "grpc.http2.min_ping_interval_without_data_ms",
                settings.ping_interval_min_ns // NS_PER_MS,
            ),
            ("grpc.http2.max_ping_strikes", settings.ping_strikes_max),
            ("grpc.so_reuseport", 0),
        ),
        compression=_COMPRESSION[settings.compression],
    )


def _register(server: grpc.aio.Server, name: str, handlers: RpcHandlers) -> None:
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, dict(handlers)),))


def _add_reflection(server: grpc.aio.Server, services: Iterable[str]) -> None:
    """Serve reflection under both of its names; their messages are the same on the wire."""
    names = (*services, REFLECTION_SERVICE, REFLECTION_V1_SERVICE)
    servicer = reflection_aio.ReflectionServicer(names)
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    for name in (REFLECTION_SERVICE, REFLECTION_V1_SERVICE):
        _register(server, name, {"ServerReflectionInfo": handler})


def _bind(
    server: grpc.aio.Server, address: BindAddress, credentials: grpc.ServerCredentials | None
) -> int:
    target = str(BindAddress(host=address.host or wildcard_host(), port=address.port))
    try:
        if credentials is None:
            return server.add_insecure_port(target)
        return server.add_secure_port(target, credentials)
    except RuntimeError as error:
        raise ListenError(
            listener="grpc", address=str(address), reason="the address is taken or not allowed"
        ) from error
