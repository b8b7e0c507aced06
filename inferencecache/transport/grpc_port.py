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

To accept a call takes several turns of the loop, and meanwhile the library accepts no other: of the
same method where that is registered by itself, else of none of the rest, so that at 300 Picks a
second calls stood in line for that. But each call waits anew for the next one of every method that
is registered so. Hence the busy ones are, and health, which is asked past any crowd.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

import grpc
from grpc_health.v1.health import SERVICE_NAME as HEALTH_SERVICE
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import SERVICE_NAME as REFLECTION_SERVICE
from grpc_reflection.v1alpha.reflection import aio as reflection_aio

from inferencecache.clock import NS_PER_MS
from inferencecache.settings.address import BindAddress
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.transport.call_gate import CallGate
from inferencecache.transport.deserialize import lenient
from inferencecache.transport.grpc_health import HealthBoard
from inferencecache.transport.listen import ListenError, open_listening_socket, wildcard_host
from inferencecache.transport.open_sockets import end_connections
from inferencecache.transport.rpc_table import RpcHandler
from inferencecache.transport.start_error import StartError

REFLECTION_V1_SERVICE: Final = "grpc.reflection.v1.ServerReflection"
"""The stable name of the same protocol; newer tools ask for it first."""

_REFLECTION_BYTES_MAX: Final = 65_536
"""What can be asked for has no name as long as that."""

RpcHandlers = Mapping[str, RpcHandler]

_COMPRESSION: Final = {
    "none": grpc.Compression.NoCompression,
    "deflate": grpc.Compression.Deflate,
    "gzip": grpc.Compression.Gzip,
}

_LAST_CALLS_S: Final = 1.0
"""What short calls get after streams have taken all of the time; they need milliseconds."""

_OWN_LINE: Final = frozenset(
    ["LookupRoute", "ReportCacheState", "PublishEvent", "PushBody", "Pick", "PullBody", "Check"]
)
"""Methods that are accepted in a line of their own."""


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
        self._health = HealthBoard()
        self._is_serving = False
        self._withheld: set[str] = set()
        self._gate = CallGate()
        self._server: grpc.aio.Server | None = None
        self._address: BindAddress | None = None

    async def start(self) -> BindAddress:
        """Listen and serve.

        Returns:
            The address in use, with its real port.

        Raises:
            ListenError: The address cannot be had.
            StartError: The gRPC core does not take the certificate.
        """
        server = _new_server(self._settings)
        for name, handlers in self._services.items():
            guarded = {method: self._gate.guarded(each) for method, each in handlers.items()}
            _serve(server, name, guarded)
        _serve(server, HEALTH_SERVICE, self._health.handlers())
        _add_reflection(server, (*self._services, HEALTH_SERVICE))
        address = BindAddress.parse(self._settings.bind_address)
        port = _bind(server, address, self._credentials)
        await self.set_serving(is_serving=True)
        await server.start()
        self._server = server
        self._address = BindAddress(host=address.host, port=port)
        return self._address

    async def set_serving(self, *, is_serving: bool) -> None:
        """Show SERVING or NOT_SERVING for the server and each of its services."""
        self._is_serving = is_serving
        for name in ("", *self._services):
            self._show(name)

    async def withhold(self, service: str, *, is_withheld: bool) -> None:
        """Show *service* as NOT_SERVING for as long as it is not ready, whatever the others are."""
        (self._withheld.add if is_withheld else self._withheld.discard)(service)
        self._show(service)

    def _show(self, name: str) -> None:
        self._health.show(name, is_serving=self._is_serving and name not in self._withheld)

    async def end_connections(self) -> int:
        """Make all clients connect again; return how many there were.

        Their running calls end as UNAVAILABLE.
        """
        if self._address is None:
            return 0
        return await asyncio.to_thread(end_connections, self._address)

    async def stop(self, grace_s: float) -> None:
        """Take no new streams, let running ones end, then the other calls, then cut off the rest.

        Whoever is turned away or cut off learns UNAVAILABLE.

        Args:
            grace_s: Longest wait for streams and calls, in seconds.
        """
        if self._server is None or self._address is None:
            return
        loop = asyncio.get_running_loop()
        end_s = loop.time() + grace_s
        await self.set_serving(is_serving=False)
        self._gate.close_to_streams()
        await self._gate.wait_streams(grace_s)
        self._gate.close()
        await self._gate.wait_calls(min(grace_s, max(end_s - loop.time(), _LAST_CALLS_S)))
        await self._health.told(min(grace_s, _LAST_CALLS_S))
        end_connections(self._address, with_listener=True)
        # What was cut off ends by itself; the library complains of what it finds running.
        await self._gate.wait_streams(_LAST_CALLS_S)
        await self._gate.wait_calls(_LAST_CALLS_S)
        await self._server.stop(None)
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
            ("grpc.max_allowed_incoming_connections", settings.connections_max),
            ("grpc.server_handshake_timeout_ms", settings.handshake_timeout_ns // NS_PER_MS),
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


def _serve(server: grpc.aio.Server, name: str, handlers: RpcHandlers) -> None:
    """Serve *handlers*, the busy ones each in a line of its own."""
    alone = {method: each for method, each in handlers.items() if method in _OWN_LINE}
    server.add_registered_method_handlers(name, alone)
    _register(server, name, {m: each for m, each in handlers.items() if m not in alone})


def _register(server: grpc.aio.Server, name: str, handlers: RpcHandlers) -> None:
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, dict(handlers)),))


def _add_reflection(server: grpc.aio.Server, services: Iterable[str]) -> None:
    """Serve reflection under both of its names; their messages are the same on the wire."""
    names = (*services, REFLECTION_SERVICE, REFLECTION_V1_SERVICE)
    servicer = reflection_aio.ReflectionServicer(names)
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=_read_reflection,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    for name in (REFLECTION_SERVICE, REFLECTION_V1_SERVICE):
        _register(server, name, {"ServerReflectionInfo": handler})


def _read_reflection(data: bytes) -> object:
    """Return a request; one that does not parse asks for nothing, and is answered so."""
    request = reflection_pb2.ServerReflectionRequest
    return lenient(request, _REFLECTION_BYTES_MAX)(data) or request()


def _bind(
    server: grpc.aio.Server, address: BindAddress, credentials: grpc.ServerCredentials | None
) -> int:
    target = str(BindAddress(host=address.host or wildcard_host(), port=address.port))
    try:
        if credentials is None:
            return server.add_insecure_port(target)
        return server.add_secure_port(target, credentials)
    except RuntimeError as error:
        raise _why_not(address, credentials) from error


def _why_not(
    address: BindAddress, credentials: grpc.ServerCredentials | None
) -> ListenError | StartError:
    """Return what keeps a port from being opened; the core does not say."""
    try:
        open_listening_socket("grpc", address).close()
    except ListenError as taken:
        return taken
    if credentials is not None:
        return StartError(
            event="grpc_tls_load",
            reason="gRPC does not take the certificate, its key or the clients' authority",
        )
    return ListenError(listener="grpc", address=str(address), reason="gRPC cannot listen there")
