"""Open the connection a client keeps for its whole life."""

from typing import Final

import grpc
import grpc.aio

from inferencecache.clock import NS_PER_MS
from inferencecache.settings.client import ClientSettings

SERVICE_NAME: Final = "inferencecache.v1alpha1.InferenceCache"
LOOKUP_METHOD: Final = f"/{SERVICE_NAME}/LookupRoute"
REPORT_METHOD: Final = f"/{SERVICE_NAME}/ReportCacheState"
EVENT_METHOD: Final = f"/{SERVICE_NAME}/PublishEvent"

Options = list[tuple[str, int]]


def channel_options(settings: ClientSettings) -> Options:
    """Return the gRPC arguments that *settings* stand for.

    Retries are off: a hint that comes late is worth nothing, so a lookup is one attempt. The
    subchannel pool is the channel's own, because a shared one would mix the back-off and
    keepalive of clients with different settings. The ping timeout is set twice: gRPC's C core waits
    for the answer to a keepalive ping as long as its own ``ping_timeout_ms`` says, a minute unless
    told otherwise, whatever ``keepalive_timeout_ms`` is.
    """
    return [
        ("grpc.keepalive_time_ms", settings.keepalive_interval_ns // NS_PER_MS),
        ("grpc.keepalive_timeout_ms", settings.keepalive_timeout_ns // NS_PER_MS),
        ("grpc.http2.ping_timeout_ms", settings.keepalive_timeout_ns // NS_PER_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.min_reconnect_backoff_ms", settings.connect_timeout_ns // NS_PER_MS),
        ("grpc.initial_reconnect_backoff_ms", settings.reconnect_initial_ns // NS_PER_MS),
        ("grpc.max_reconnect_backoff_ms", settings.reconnect_max_ns // NS_PER_MS),
        ("grpc.max_receive_message_length", settings.answer_bytes_max),
        ("grpc.max_send_message_length", -1),
        ("grpc.enable_retries", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]


def open_channel(
    target: str, settings: ClientSettings, credentials: grpc.ChannelCredentials | None
) -> grpc.Channel:
    """Return a channel for blocking calls; it connects on first use.

    Args:
        target: gRPC target, for example ``localhost:9090`` or ``dns:///cache:9090``.
        settings: Times and limits of the connection.
        credentials: TLS or composite credentials; None means plaintext.
    """
    options = channel_options(settings)
    if credentials is None:
        return grpc.insecure_channel(target, options=options)
    return grpc.secure_channel(target, credentials, options=options)


def open_async_channel(
    target: str, settings: ClientSettings, credentials: grpc.ChannelCredentials | None
) -> grpc.aio.Channel:
    """Return a channel for the running event loop; arguments as for :func:`open_channel`."""
    options = channel_options(settings)
    if credentials is None:
        return grpc.aio.insecure_channel(target, options=options)
    return grpc.aio.secure_channel(target, credentials, options=options)
