"""Clients of a gRPC port with TLS, each with a connection of its own."""

import asyncio
import ssl

import grpc
from certificates import Authority, Pair
from controlled import SCOPE
from cryptography import x509

from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as rpc


def channel(target: str, authority: Authority, client: Pair | None = None) -> grpc.aio.Channel:
    """Return a channel with a connection of its own."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    return grpc.aio.secure_channel(target, authority.channel_credentials(client), options)


async def reaches(target: str, authority: Authority, client: Pair | None = None) -> bool:
    """Return whether a new connection gets an answer."""
    async with channel(target, authority, client) as connected:
        try:
            await rpc.InferenceCacheStub(connected).LookupRoute(pb.LookupRouteRequest(**SCOPE))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            return False
    return True


async def served_serial(target: str) -> int:
    """Return the serial number of the certificate that a new connection is shown."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    host, _, port = target.rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return x509.load_der_x509_certificate(shown).serial_number
