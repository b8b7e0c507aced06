"""gRPC over TLS: rotation, versions, and what either side sees when the other speaks plaintext."""

import asyncio
import ssl
import warnings
from pathlib import Path

import grpc
import pytest
from certificates import Authority, replace_file
from controlled import controlled, update
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tls_clients import channel, reaches, served_serial

from inferencecache.settings.server import ServerSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.settings.tls import TlsSettings
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as rpc


def tls_settings(
    directory: Path, authority: Authority, *, with_clients: bool = False
) -> ServerSettings:
    """Write the files of a server; return the settings that name them."""
    cert_file, key_file = authority.server().write(directory)
    ca_file = str(authority.write(directory / "clients.pem")) if with_clients else ""
    tls = TlsSettings(cert_file=str(cert_file), key_file=str(key_file), client_ca_file=ca_file)
    return throwaway_server_settings(tls=tls)


async def test_lookups_and_health_work_over_tls(tmp_path: Path) -> None:
    """Both services follow the port's transport, and a gauge says so."""
    authority = Authority()
    async with controlled(tls_settings(tmp_path, authority)) as control:
        async with channel(control.server.grpc_target, authority) as connected:
            health = health_pb2_grpc.HealthStub(connected)
            status = (await health.Check(health_pb2.HealthCheckRequest())).status
            assert status == health_pb2.HealthCheckResponse.SERVING
            answer = await rpc.InferenceCacheStub(connected).LookupRoute(pb.LookupRouteRequest())
            assert answer.reason_code == "NO_HINT"
        assert await control.metric("inferencecache_server_grpc_tls_enabled") == 1
        (fields,) = control.log.of("startup")
        assert fields["grpc_tls"] is True


async def test_plaintext_is_served_without_files() -> None:
    """And the gauge says so."""
    async with controlled() as control:
        await control.report(update())
        assert await control.metric("inferencecache_server_grpc_tls_enabled") == 0


async def test_either_side_refuses_what_the_other_does_not_speak(tmp_path: Path) -> None:
    """Plaintext to a TLS port, and TLS to a plaintext port, end in UNAVAILABLE."""
    authority = Authority()
    async with controlled(tls_settings(tmp_path, authority)) as control:
        async with grpc.aio.insecure_channel(control.server.grpc_target) as plain:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await rpc.InferenceCacheStub(plain).LookupRoute(pb.LookupRouteRequest())
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    async with controlled() as control:
        assert not await reaches(control.server.grpc_target, authority)


async def test_old_versions_of_tls_are_refused(tmp_path: Path) -> None:
    """Nothing below 1.2, whatever the client would accept."""
    authority = Authority()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname = False
        old.verify_mode = ssl.CERT_NONE
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.set_alpn_protocols(["h2"])
    async with controlled(tls_settings(tmp_path, authority)) as control:
        host, _, port = control.server.grpc_target.rpartition(":")
        with pytest.raises(OSError):  # noqa: PT011 - reset or alert, as the versions have it
            await asyncio.open_connection(host, int(port), ssl=old)


async def test_a_rotated_certificate_is_served_to_new_connections(tmp_path: Path) -> None:
    """No restart, and no connection is cut; half a rotation keeps the old pair and complains."""
    authority = Authority()
    async with controlled(tls_settings(tmp_path, authority)) as control:
        target = control.server.grpc_target
        async with channel(target, authority) as connected:
            stub = rpc.InferenceCacheStub(connected)
            await stub.LookupRoute(pb.LookupRouteRequest())
            first = await served_serial(target)
            second = authority.server()
            replace_file(tmp_path / "server.pem", second.certificate)
            await control.server.rotation.look()
            assert await served_serial(target) == first
            (fields,) = control.log.of("grpc_tls_reload")
            assert "server.key" in str(fields["reason"])
            replace_file(tmp_path / "server.key", second.key)
            await control.server.rotation.look()
            assert await served_serial(target) == second.serial
            await stub.LookupRoute(pb.LookupRouteRequest())
        reloads = "inferencecache_tls_reloads_total"
        assert await control.metric(reloads, listener="grpc", result="taken") == 1
        assert await control.metric(reloads, listener="grpc", result="refused") == 1


async def test_looks_at_the_same_moment_take_a_change_once(tmp_path: Path) -> None:
    """Whoever asks for a look has one behind him, also where the server was looking by itself."""
    authority = Authority()
    async with controlled(tls_settings(tmp_path, authority)) as control:
        for number in range(1, 4):
            authority.server().write(tmp_path)
            await asyncio.gather(*(control.server.rotation.look() for _ in range(4)))
            reloads = "inferencecache_tls_reloads_total"
            assert await control.metric(reloads, listener="grpc", result="taken") == number


async def test_clients_need_a_certificate_of_the_newest_authority(tmp_path: Path) -> None:
    """Without one, or with one from elsewhere, the handshake fails."""
    authority, other = Authority(), Authority("another")
    async with controlled(tls_settings(tmp_path, authority, with_clients=True)) as control:
        target = control.server.grpc_target
        assert not await reaches(target, authority)
        assert not await reaches(target, authority, other.client("gateway"))
        assert await reaches(target, authority, authority.client("gateway"))
        other.write(tmp_path / "clients.pem")
        await control.server.rotation.look()
        assert not await reaches(target, authority, authority.client("gateway"))
        assert await reaches(target, authority, other.client("gateway"))
