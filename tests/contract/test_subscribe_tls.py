"""A producer on real sockets: servers that speak TLS and ask who is there."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from certificates import Authority
from engine_payloads import T16, batch, map_store
from engine_sockets import engine_sockets
from followed import LIMIT_S, Lines, matched, producer_settings, source

from inferencecache.app.producer import Producer, running_producer
from inferencecache.app.server import running_server
from inferencecache.errors import ConfigError
from inferencecache.settings.delivery import ServerTlsSettings
from inferencecache.settings.subscribe import ProducerSettings, SourceSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.settings.tls import TlsSettings


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
