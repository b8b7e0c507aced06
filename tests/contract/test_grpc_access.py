"""With client certificates, each client reaches the tenants that it is given, and no others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from certificates import Authority, Pair, replace_file
from controlled import SCOPE, Controlled, controlled, update
from grpc_health.v1 import health_pb2, health_pb2_grpc

from inferencecache.kinference.v1 import picker_pb2 as picker_pb
from inferencecache.kinference.v1.picker_pb2_grpc import PickerStub
from inferencecache.settings.resources import ResourceSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.settings.tls import TlsSettings
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as rpc

DENIED = grpc.StatusCode.PERMISSION_DENIED
LOOKUP = pb.LookupRouteRequest(**SCOPE, block_hashes=[b"1"], block_token_counts=[64])
EVENT = pb.CacheEvent(type=pb.CacheEvent.ALL_CLEARED, tenant_id="t1", model_id="m1", replica_id="a")
STATE = pb.GetCacheStateRequest(tenant_id="t1", model_id="m1")
ACCESS = """\
apiVersion: inferencecache.io/v1alpha1
kind: TenantAccess
metadata: {{name: {name}, namespace: cache}}
spec:
  clients: ["{client}"]
  read: [{read}]
  write: [{write}]
---
"""
GRANTS = (
    ACCESS.format(name="engine", client="uri:spiffe://x/engine", read="", write="t1")
    + ACCESS.format(name="gateway", client="dns:gateway.example", read="t1", write="")
    + ACCESS.format(name="admin", client="cn:admin", read='"*"', write='"*"')
)


class Guarded:
    """A server that knows its clients."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority()
        self.resources = directory / "resources"
        self.resources.mkdir()
        cert_file, key_file = self.authority.server().write(directory)
        ca_file = self.authority.write(directory / "clients.pem")
        replace_file(self.resources / "access.yaml", GRANTS.encode())
        self.settings = replace(
            throwaway_server_settings(),
            tls=TlsSettings(
                cert_file=str(cert_file), key_file=str(key_file), client_ca_file=str(ca_file)
            ),
            resources=ResourceSettings(directory=str(self.resources)),
        )

    @asynccontextmanager
    async def stub(
        self, control: Controlled, client: Pair, kind: type[Any] = rpc.InferenceCacheStub
    ) -> AsyncIterator[Any]:
        """Connect as *client*, to the service of a *kind* of stub."""
        credentials = self.authority.channel_credentials(client)
        async with grpc.aio.secure_channel(control.server.grpc_target, credentials) as channel:
            yield kind(channel)


@pytest.fixture
async def guarded(tmp_path: Path) -> Guarded:
    """Prepare a server."""
    return Guarded(tmp_path)


async def code_of(call: Any) -> grpc.StatusCode | None:
    """Return the status of a call that fails, None of one that does not."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return None


async def test_writers_write_and_readers_read(guarded: Guarded) -> None:
    """An engine reports and may not look; a gateway looks and may not report."""
    engine = guarded.authority.client(uri="spiffe://x/engine")
    gateway = guarded.authority.client(dns="gateway.example")
    async with controlled(guarded.settings) as control:
        async with guarded.stub(control, engine) as stub:
            assert await code_of(stub.ReportCacheState(iter([update()]))) is None
            assert (await stub.LookupRoute(LOOKUP)).reason_code == "NO_HINT"
            assert await code_of(stub.GetCacheState(STATE)) is DENIED
        async with guarded.stub(control, gateway) as stub:
            assert (await stub.LookupRoute(LOOKUP)).reason_code == "PREFIX_MATCH"
            assert await code_of(stub.ReportCacheState(iter([update()]))) is DENIED
            assert await code_of(stub.PublishEvent(EVENT)) is DENIED
            assert (await stub.LookupRoute(LOOKUP)).reason_code == "PREFIX_MATCH"
            state = await stub.GetCacheState(STATE)
            assert state.summary.total_prefixes == 1
        denied = "inferencecache_grpc_access_denied_total"
        assert await control.metric(denied, method="LookupRoute") == 1
        assert await control.metric(denied, method="ReportCacheState") == 1
        assert await control.metric(denied, method="PublishEvent") == 1
        assert await control.metric(denied, method="GetCacheState") == 1


async def test_a_pick_that_is_denied_keeps_no_body(guarded: Guarded) -> None:
    """Its bytes go at once, and its id is used up; an id of nobody stays one of nobody."""
    gateway = guarded.authority.client(dns="gateway.example")
    async with (
        controlled(guarded.settings) as control,
        guarded.stub(control, gateway, PickerStub) as stub,
    ):
        bodies = control.server.picker.plane.bodies
        pushed = await stub.PushBody(iter([picker_pb.BodyChunk(chunk=b'{"model":"m"}')]))
        assert bodies.buffered_bytes == 13
        request = picker_pb.PickRequest(body_stream_id=pushed.stream_id, tenant="t2")
        assert await code_of(stub.Pick(request)) is DENIED
        assert (bodies.buffered_bytes, len(bodies)) == (0, 0)
        assert await code_of(stub.Pick(request)) is DENIED
        request.tenant = "t1"
        assert await code_of(stub.Pick(request)) is grpc.StatusCode.FAILED_PRECONDITION
        for number, code in (
            (0, grpc.StatusCode.INVALID_ARGUMENT),
            (7, grpc.StatusCode.NOT_FOUND),
        ):
            unknown = picker_pb.PickRequest(body_stream_id=number, tenant="t2")
            assert await code_of(stub.Pick(unknown)) is DENIED
            unknown.tenant = "t1"
            assert await code_of(stub.Pick(unknown)) is code


async def test_a_gateway_picks_for_its_tenants_only(guarded: Guarded) -> None:
    """Whoever may pick for none cannot fill the room for bodies, either."""
    gateway = guarded.authority.client(dns="gateway.example")
    engine = guarded.authority.client(uri="spiffe://x/engine")
    stranger = guarded.authority.client("stranger")
    body = [picker_pb.BodyChunk(chunk=b'{"model":"m"}')]
    async with controlled(guarded.settings) as control:
        async with guarded.stub(control, gateway, PickerStub) as stub:
            for tenant, code in (("t1", None), ("t2", DENIED), ("", DENIED)):
                pushed = await stub.PushBody(iter(body))
                request = picker_pb.PickRequest(body_stream_id=pushed.stream_id, tenant=tenant)
                assert await code_of(stub.Pick(request)) is code
        for other in (engine, stranger):
            async with guarded.stub(control, other, PickerStub) as stub:
                assert await code_of(stub.PushBody(iter(body))) is DENIED
        denied = "inferencecache_grpc_access_denied_total"
        assert await control.metric(denied, method="Pick") == 2
        assert await control.metric(denied, method="PushBody") == 2


async def test_a_refused_stream_says_why_however_quick_the_refusal(guarded: Guarded) -> None:
    """Not that the caller's own call broke, which it learns while it still sends."""
    gateway = guarded.authority.client(dns="gateway.example")
    async with (
        controlled(guarded.settings) as control,
        guarded.stub(control, gateway) as stub,
        asyncio.timeout(60),
    ):
        codes = {
            await code_of(stub.ReportCacheState(iter([update()] * (number % 4))))
            for number in range(300)
        }
        assert codes == {DENIED}
        silent = stub.ReportCacheState()
        await silent.wait_for_connection()
        assert await code_of(silent) is DENIED
        with pytest.raises(grpc.aio.AioRpcError):
            await talk(stub.ReportCacheState())


async def talk(stream: Any) -> None:
    """Report on *stream* for as long as it is taken."""
    while True:
        await stream.write(update())


async def test_other_tenants_are_out_of_reach(guarded: Guarded) -> None:
    """A stream that names a foreign tenant ends there; what came before stays."""
    engine = guarded.authority.client(uri="spiffe://x/engine")
    async with controlled(guarded.settings) as control:
        async with guarded.stub(control, engine) as stub:
            updates = [update("a"), update("b", tenant_id="t2"), update("c")]
            assert await code_of(stub.ReportCacheState(iter(updates))) is DENIED
        admin = guarded.authority.client("admin")
        async with guarded.stub(control, admin) as stub:
            state = await stub.GetCacheState(STATE)
            assert state.summary.total_prefixes == 1
            other = await stub.GetCacheState(pb.GetCacheStateRequest(tenant_id="t2", model_id="m1"))
            assert other.summary.total_prefixes == 0


async def test_an_identity_without_a_mapping_gets_nothing_but_health(guarded: Guarded) -> None:
    """Its certificate is real, and that is all; names of another kind do not help."""
    stranger = guarded.authority.client("spiffe://x/engine", dns="admin")
    async with controlled(guarded.settings) as control:
        async with guarded.stub(control, stranger) as stub:
            assert (await stub.LookupRoute(LOOKUP)).reason_code == "NO_HINT"
            assert await code_of(stub.ReportCacheState(iter([update()]))) is DENIED
            assert await code_of(stub.ReportCacheState(iter([]))) is DENIED
        credentials = guarded.authority.channel_credentials(stranger)
        async with grpc.aio.secure_channel(control.server.grpc_target, credentials) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            status = (await health.Check(health_pb2.HealthCheckRequest())).status
            assert status == health_pb2.HealthCheckResponse.SERVING
            report = channel.stream_unary(
                "/inferencecache.v1alpha1.InferenceCache/ReportCacheState"
            )
            assert await code_of(report(iter([b"\xff\xff\xff"]))) is DENIED
        denied = "inferencecache_grpc_access_denied_total"
        assert await control.metric(denied, method="ReportCacheState") == 3


async def test_a_refusal_says_what_and_to_whom(guarded: Guarded) -> None:
    """One tenant by its name in quotes, all of them without; a tenant may have any name."""
    engine = guarded.authority.client(uri="spiffe://x/engine")
    stranger = guarded.authority.client("nobody")
    async with controlled(guarded.settings) as control:
        async with guarded.stub(control, engine) as stub:
            foreign = stub.ReportCacheState(iter([update(tenant_id="any tenant")]))
            assert await code_of(foreign) is DENIED
            assert await foreign.details() == (
                "ReportCacheState: this client may not write tenant 'any tenant'"
            )
        async with guarded.stub(control, stranger) as stub:
            report = stub.ReportCacheState(iter([update()]))
            assert await code_of(report) is DENIED
            assert await report.details() == (
                "ReportCacheState: this client may not write any tenant"
            )


async def test_a_changed_mapping_counts_for_open_connections(guarded: Guarded) -> None:
    """Access is looked up at each request, so taking it away needs no reconnect."""
    gateway = guarded.authority.client(dns="gateway.example")
    async with controlled(guarded.settings) as control, guarded.stub(control, gateway) as stub:
        assert await code_of(stub.GetCacheState(STATE)) is None
        (guarded.resources / "access.yaml").unlink()
        await control.server.resources.look()
        assert await code_of(stub.GetCacheState(STATE)) is DENIED


async def test_a_server_without_any_mapping_says_so(guarded: Guarded) -> None:
    """Nobody can do anything then, which is safe, and hardly what somebody wanted."""
    async with controlled(guarded.settings) as control:
        assert not control.log.of("tenant_access_missing")
    (guarded.resources / "access.yaml").unlink()
    async with controlled(guarded.settings) as control:
        assert control.log.of("tenant_access_missing")
