"""A producer on real sockets: servers that speak TLS and ask who is there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from certificates import Authority, Pair
from engine_payloads import T16, batch, map_remove, map_store
from engine_sockets import EngineSockets, engine_sockets
from followed import LIMIT_S, TENANT, Lines, matched, producer_settings, source

from inferencecache.app.producer import Producer, running_producer
from inferencecache.app.producer_stats import ServerStats
from inferencecache.app.server import Server, running_server
from inferencecache.errors import ConfigError
from inferencecache.settings.delivery import ServerTlsSettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.settings.subscribe import ProducerSettings, SourceSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.settings.tls import TlsSettings
from inferencecache.transport.delivery_tls import server_credentials

WRITER = "spiffe://x/engine"
GRANT = f"""\
apiVersion: inferencecache.io/v1alpha1
kind: TenantAccess
metadata: {{name: engine, namespace: cache}}
spec:
  clients: ["uri:{WRITER}"]
  read: []
  write: [{TENANT}]
"""


async def test_reports_reach_a_server_with_a_certificate(tmp_path: Path) -> None:
    """The server is checked by its authority."""
    authority = Authority()
    cert_file, key_file = authority.server().write(tmp_path)
    tls = TlsSettings(cert_file=str(cert_file), key_file=str(key_file))
    trust = ServerTlsSettings(ca_file=str(authority.write(tmp_path / "ca.pem")))
    async with (
        engine_sockets() as engine,
        running_server(throwaway_server_settings(tls=tls), Lines()) as server,
    ):
        chosen = replace(producer_settings(source(engine), servers=server.grpc_target), tls=trust)
        async with running_producer(chosen, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(batch(map_store([1], T16)))
            async with asyncio.timeout(LIMIT_S):
                await producer.until(lambda: producer.stats.servers[0].delivered_keys == 1)

            assert matched(server, T16) == 16


class Asked:
    """A producer in front of a server that asks clients for certificates.

    Attributes:
        engine: Has published one block.
        server: Lets who is called like :data:`WRITER` write to tenant :data:`TENANT`.
        producer: Shows the certificate under test.
        log: What the producer logged.
    """

    def __init__(
        self, engine: EngineSockets, server: Server, producer: Producer, log: Lines
    ) -> None:
        self.engine = engine
        self.server = server
        self.producer = producer
        self.log = log

    @property
    def told(self) -> ServerStats:
        """What the producer knows of the server."""
        return self.producer.stats.servers[0]


@asynccontextmanager
async def asked(directory: Path, authority: Authority, shown: Pair | None) -> AsyncIterator[Asked]:
    """Run all three, the producer with the certificate *shown*."""
    cert_file, key_file = authority.server().write(directory)
    ca_file = str(authority.write(directory / "ca.pem"))
    resources = directory / "resources"
    resources.mkdir()
    (resources / "access.yaml").write_text(GRANT, encoding="utf-8")
    settings = throwaway_server_settings(
        tls=TlsSettings(cert_file=str(cert_file), key_file=str(key_file), client_ca_file=ca_file),
        resources=ResourceSettings(directory=str(resources)),
    )
    own = ("", "") if shown is None else shown.write(directory, "producer")
    tls = ServerTlsSettings(ca_file=ca_file, cert_file=str(own[0]), key_file=str(own[1]))
    log = Lines()
    async with (
        asyncio.timeout(LIMIT_S),
        engine_sockets() as engine,
        running_server(settings, Lines()) as server,
    ):
        chosen = replace(producer_settings(source(engine), servers=server.grpc_target), tls=tls)
        async with running_producer(chosen, log) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            await engine.publish(batch(map_store([1], T16)))
            yield Asked(engine, server, producer, log)


async def test_a_client_certificate_opens_its_tenant(tmp_path: Path) -> None:
    """Clears, reports and evictions all pass."""
    authority = Authority()
    async with asked(tmp_path, authority, authority.client(uri=WRITER)) as found:
        await found.producer.until(lambda: found.told.delivered_keys == 1)
        assert matched(found.server, T16) == 16
        await found.engine.publish(batch(map_remove([1])))
        await found.producer.until(lambda: found.told.evicted_keys == 1)
        assert matched(found.server, T16) == 0
        assert found.told.failures == 0


async def test_a_certificate_without_the_grant_is_refused_by_name(tmp_path: Path) -> None:
    """The log says which access is missing, and the producer goes on trying."""
    authority = Authority()
    async with asked(tmp_path, authority, authority.client(uri="spiffe://x/other")) as found:
        await found.producer.until(lambda: found.told.failures >= 2)
        failed = found.log.fields_of("delivery_failed")[0]

        assert failed["status"] == "PERMISSION_DENIED"
        assert TENANT in str(failed["detail"])
        assert found.told.is_connected
        assert found.server.plane.index.entries == 0


@pytest.mark.parametrize("has_one", [False, True])
async def test_no_certificate_of_the_authority_is_no_connection(
    tmp_path: Path, *, has_one: bool
) -> None:
    """Neither none nor one of somebody else's gets through the handshake."""
    stranger = Authority("somebody else").client(uri=WRITER) if has_one else None
    async with asked(tmp_path, Authority(), stranger) as found:
        await found.producer.until(lambda: bool(found.log.fields_of("server_unreachable")))

        assert found.told.delivered_keys == 0
        assert found.server.plane.index.entries == 0


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (ServerTlsSettings(ca_file="/nowhere/ca.pem"), "server-ca-file"),
        (ServerTlsSettings(cert_file="c.pem"), "server-client-key-file"),
        (ServerTlsSettings(key_file="k.pem"), "server-client-cert-file"),
        (ServerTlsSettings(cert_file="c.pem", key_file="k.pem"), "server-client-cert-file"),
    ],
)
def test_files_that_make_no_whole_are_refused(settings: ServerTlsSettings, field: str) -> None:
    """Nobody should believe in a protection that is not there."""
    found = SourceSettings()
    engine = replace(found.engine, replica_id="r", model_id="m")
    with pytest.raises(ConfigError) as caught:
        Producer(ProducerSettings(sources=(replace(found, engine=engine),), tls=settings), Lines())

    assert caught.value.field == field


@pytest.mark.parametrize("empty", ["ca_file", "cert_file", "key_file"])
def test_an_empty_file_is_refused_at_the_start(tmp_path: Path, empty: str) -> None:
    """GRPC would try again for ever, and never say why."""
    authority = Authority()
    cert_file, key_file = authority.client(uri=WRITER).write(tmp_path)
    ca_file = authority.write(tmp_path / "ca.pem")
    files = {"ca_file": str(ca_file), "cert_file": str(cert_file), "key_file": str(key_file)}
    Path(files[empty]).write_text("\n")
    with pytest.raises(ConfigError) as caught:
        server_credentials(ServerTlsSettings(**files))

    flags = {"ca_file": "ca", "cert_file": "client-cert", "key_file": "client-key"}
    assert caught.value.field == f"server-{flags[empty]}-file"
    assert "not empty" in str(caught.value)
