"""An authority of clients that is taken away: its clients lose what they have, others come back."""

import asyncio
from pathlib import Path

import aiohttp
import grpc
import pytest
from certificates import Authority, replace_file
from controlled import SCOPE, Controlled, controlled
from open_stream import open_stream

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.auth import AuthSettings
from inferencecache.settings.control import ControlSettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.settings.server import ServerSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.settings.tls import TlsSettings
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as rpc

FREE = "127.0.0.1:0"
IDLE_S = 600
"""Longer than a look takes where every process has to wait for a processor: two are started."""

GRANTS = """\
apiVersion: inferencecache.io/v1alpha1
kind: TenantAccess
metadata: {name: all, namespace: cache}
spec:
  clients: ["cn:engine"]
  read: ["*"]
  write: ["*"]
"""


class TwoAuthorities:
    """A server whose clients come from two authorities."""

    def __init__(self, directory: Path, check_interval_ns: int = 600 * NS_PER_S) -> None:
        self.directory = directory
        self.staying, self.going = Authority("staying"), Authority("going")
        cert_file, key_file = map(str, self.staying.server().write(directory))
        self.bundle = directory / "clients.pem"
        replace_file(self.bundle, self.staying.pem + self.going.pem)
        resources = directory / "resources"
        resources.mkdir()
        (resources / "access.yaml").write_text(GRANTS)
        self._tls = TlsSettings(
            cert_file=cert_file,
            key_file=key_file,
            client_ca_file=str(self.bundle),
            check_interval_ns=check_interval_ns,
        )
        self._control = ControlSettings(
            bind_address=FREE,
            tls_cert_file=cert_file,
            tls_key_file=key_file,
            tls_client_ca_file=str(self.bundle),
            idle_timeout_ns=IDLE_S * NS_PER_S,
        )

    @property
    def settings(self) -> ServerSettings:
        """What the server is told."""
        return throwaway_server_settings(
            tls=self._tls,
            control=self._control,
            auth=AuthSettings(client_names="cn:engine"),
            resources=ResourceSettings(directory=str(self.directory / "resources")),
        )

    def channel(self, control: Controlled, authority: Authority) -> grpc.aio.Channel:
        """Return a channel of an engine with a certificate of *authority*."""
        pair = authority.client("engine")
        credentials = grpc.ssl_channel_credentials(self.staying.pem, pair.key, pair.certificate)
        options = (("grpc.use_local_subchannel_pool", 1),)
        return grpc.aio.secure_channel(control.server.grpc_target, credentials, options)


async def reported(stub: rpc.InferenceCacheStub, model_id: str = "m1") -> object:
    """Open a stream, see its first update, the only one of a model, applied, and return it."""
    scope = SCOPE | {"model_id": model_id}
    update = pb.CacheStateUpdate(replica_id="a", stats=pb.ReplicaStats(), **scope)
    return await open_stream(stub, update)


async def test_open_connections_of_a_removed_authority_end(tmp_path: Path) -> None:
    """Calls and streams over gRPC end as UNAVAILABLE; only who is still welcome comes back."""
    two = TwoAuthorities(tmp_path)
    async with controlled(two.settings) as control:
        async with (
            two.channel(control, two.going) as going,
            two.channel(control, two.staying) as staying,
        ):
            stubs = [rpc.InferenceCacheStub(each) for each in (going, staying)]
            streams = [
                await reported(stub, model_id)
                for stub, model_id in zip(stubs, ("m1", "m2"), strict=True)
            ]
            for stub in stubs:
                assert (await stub.GetCacheState(pb.GetCacheStateRequest())).summary is not None
            replace_file(two.bundle, two.staying.pem)
            await control.server.rotation.look()
            for stream in streams:
                with pytest.raises(grpc.aio.AioRpcError) as ended:
                    await stream
                assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stubs[0].GetCacheState(pb.GetCacheStateRequest())
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            request = pb.GetCacheStateRequest()
            await stubs[1].GetCacheState(request, wait_for_ready=True, timeout=30)
        (fields,) = control.log.of("client_authority_removed")[:1]
        assert (fields["listener"], fields["connections_ended"]) == ("grpc", 2)


async def test_an_authority_that_is_added_ends_nothing(tmp_path: Path) -> None:
    """Streams go on; clients of the new one are welcome."""
    two = TwoAuthorities(tmp_path)
    third = Authority("third")
    async with controlled(two.settings) as control, two.channel(control, two.going) as going:
        stream = await reported(rpc.InferenceCacheStub(going))
        replace_file(two.bundle, two.going.pem + third.pem + two.staying.pem)
        await control.server.rotation.look()
        await stream.done_writing()
        assert (await stream).accepted
        async with two.channel(control, third) as new:
            await rpc.InferenceCacheStub(new).GetCacheState(pb.GetCacheStateRequest())
        assert not control.log.of("client_authority_removed")


async def test_connections_of_the_control_listener_end_too(tmp_path: Path) -> None:
    """A kept connection is no way around the removal."""
    two = TwoAuthorities(tmp_path)
    contexts = [
        two.staying.context(authority.client("engine"), tmp_path)
        for authority in (two.going, two.staying)
    ]
    async with controlled(two.settings) as control:
        page = control.server.control_url + "/snapshot"
        kept = aiohttp.TCPConnector(keepalive_timeout=IDLE_S)
        async with aiohttp.ClientSession(connector=kept) as http:
            for context in contexts:
                async with http.get(page, ssl=context) as reply:
                    assert reply.status == 200
                    await reply.read()
            replace_file(two.bundle, two.staying.pem)
            await control.server.rotation.look()
            with pytest.raises(aiohttp.ClientError):
                await http.get(page, ssl=contexts[0])
            async with http.get(page, ssl=contexts[1]) as reply:
                assert reply.status == 200
        ended = {
            f["listener"]: f["connections_ended"]
            for f in control.log.of("client_authority_removed")
        }
        assert ended["control"] == 2


async def test_nobody_has_to_ask_for_it(tmp_path: Path) -> None:
    """The server looks by itself; a stream that is cut off notices."""
    two = TwoAuthorities(tmp_path, check_interval_ns=10 * NS_PER_MS)
    async with controlled(two.settings) as control, two.channel(control, two.going) as going:
        stream = await reported(rpc.InferenceCacheStub(going))
        replace_file(two.bundle, two.staying.pem)
        async with asyncio.timeout(30):
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await stream
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        assert not await reaches_as(two, control, two.going)
        assert await reaches_as(two, control, two.staying)


async def reaches_as(two: TwoAuthorities, control: Controlled, authority: Authority) -> bool:
    """Return whether a new connection of a client of *authority* gets an answer."""
    async with two.channel(control, authority) as connected:
        try:
            await rpc.InferenceCacheStub(connected).GetCacheState(pb.GetCacheStateRequest())
        except grpc.aio.AioRpcError as error:
            return error.code() is not grpc.StatusCode.UNAVAILABLE
        return True
