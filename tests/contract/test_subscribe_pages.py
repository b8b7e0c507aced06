"""A producer's own pages, and the command as a process of its own."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
from engine_payloads import T16, T16_KEY, batch, map_store
from engine_sockets import engine_sockets
from followed import LIMIT_S, MODEL, REPLICA, TENANT, Lines, matched, producer_settings, source
from msgpack_bytes import integer, text

from inferencecache.app.producer import Producer, running_producer
from inferencecache.app.server import running_server
from inferencecache.clock import NS_PER_MS
from inferencecache.errors import ConfigError
from inferencecache.settings.subscribe import ProducerPageSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport.producer_metrics import PRODUCER_CATALOG

PAGE = ProducerPageSettings(bind_address="127.0.0.1:0")


async def page(url: str) -> tuple[int, str]:
    """Return status and text of a page."""
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def test_readiness_follows_the_engine_and_not_the_servers() -> None:
    """Not ready before the engine is there; a server that is away does not matter."""
    async with engine_sockets() as engine:
        await engine.stop()
        settings = producer_settings(source(engine), servers="127.0.0.1:1", page=PAGE)
        async with running_producer(settings, Lines()) as producer:
            before = await page(f"{producer.page_url}/readyz")
            engine.start()
            async with asyncio.timeout(LIMIT_S):
                await producer.wait_synced()
                await engine.subscribed.wait()
            after = await page(f"{producer.page_url}/readyz")

            assert before[0] == 503
            assert "connecting" in before[1]
            assert after[0] == 200
            assert "server 127.0.0.1:1: down" in after[1]
            assert (await page(f"{producer.page_url}/healthz"))[0] == 200
            assert (await page(f"{producer.page_url}/else"))[0] == 404


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: a\r\n"])
async def test_a_silent_connection_to_the_pages_is_closed(sent: bytes) -> None:
    """Whoever sends no complete request does not hold a connection for ever."""
    settings = replace(PAGE, header_timeout_ns=NS_PER_MS)
    async with connected_to_pages(settings) as (reader, writer, _):
        writer.write(sent)

        assert await reader.read() == b""


async def test_connections_to_the_pages_are_bounded() -> None:
    """A peer that holds all there may be gets no more, and keeps those it has."""
    settings = replace(PAGE, connections_max=1)
    async with connected_to_pages(settings) as (reader, writer, url):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        with pytest.raises(aiohttp.ClientConnectionError):
            await page(f"{url}/healthz")


@asynccontextmanager
async def connected_to_pages(
    settings: ProducerPageSettings,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, str]]:
    """Run a producer with pages and connect to them; gives the connection and their URL."""
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        chosen = producer_settings(source(engine), servers="127.0.0.1:1", page=settings)
        async with running_producer(chosen, Lines()) as producer:
            address = urlsplit(producer.page_url)
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            try:
                yield reader, writer, producer.page_url
            finally:
                writer.close()


async def test_the_metrics_page_shows_numbers_and_no_tokens() -> None:
    """Counters of sources, replicas and servers are there; every name is in the catalogue."""
    async with (
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as server,
    ):
        settings = producer_settings(source(engine), servers=server.grpc_target, page=PAGE)
        async with running_producer(settings, Lines()) as producer:
            await producer.wait_synced()
            await engine.subscribed.wait()
            # So large that none of them is some other number's part by chance.
            prompt = [4_123_456_789 + 1_001 * number for number in range(16)]
            adapters = {"lora_id": integer(7)}, {"lora_name": text("sql")}
            unmapped = [map_store([2], prompt, **adapter) for adapter in adapters]
            await engine.publish(batch(map_store([1], prompt), *unmapped))
            async with asyncio.timeout(LIMIT_S):
                await producer.until(lambda: producer.stats.servers[0].delivered_keys == 1)
            _, shown = await page(f"{producer.page_url}/metrics")

        names = {line.split()[2] for line in shown.splitlines() if line.startswith("# TYPE")}
        own = {name for name in names if name.startswith("inferencecache_")}
        assert f'inferencecache_producer_batches_total{{source="{REPLICA}"}} 1.0' in shown
        assert f'inferencecache_producer_keys{{replica="{REPLICA}",tier="T1"}} 1.0' in shown
        for adapter in ("7", "sql"):
            labels = f'adapter="{adapter}",replica="{REPLICA}"'
            assert f"inferencecache_producer_unmapped_adapters_total{{{labels}}} 1.0" in shown
        assert own <= {spec.name for spec in PRODUCER_CATALOG}
        assert not [token for token in prompt if str(token) in shown]


async def test_the_command_follows_engines_from_a_list(tmp_path: Path) -> None:
    """``subscribe --sources`` reads engines from a file, logs JSON and ends with 0 on SIGTERM."""
    async with (
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as server,
    ):
        await engine.publish(batch(map_store([1], T16)))
        sources = tmp_path / "sources.yaml"
        sources.write_text(
            f"- engine-endpoint: {engine.endpoint}\n"
            f"  replay-endpoint: {engine.replay_endpoint}\n"
            f"  replica-id: {REPLICA}\n"
            "  engine-metrics-url: ''\n",
            encoding="utf-8",
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "inferencecache", "subscribe"),
            *("--sources", str(sources), "--model-id", MODEL, "--tenant-id", TENANT),
            *("--server", server.grpc_target, "--metrics-listen", "127.0.0.1:0"),
            stderr=asyncio.subprocess.PIPE,
        )
        awaited = {"engine_synced", "server_connected"}
        async with asyncio.timeout(LIMIT_S):
            assert process.stderr is not None
            while awaited:
                awaited.discard(json.loads(await process.stderr.readline())["msg"])
        process.send_signal(signal.SIGTERM)
        _, log = await process.communicate()

        events = [json.loads(line)["msg"] for line in log.decode().splitlines()]
        assert process.returncode == 0
        assert "engine_disconnected" not in events
        assert matched(server, T16) == 16
        assert str(T16[0]) not in log.decode()


async def test_once_ends_by_itself_and_dumps_what_is_held() -> None:
    """``--once --dump`` takes in the past, tells the server and writes one line per key."""
    async with (
        engine_sockets() as engine,
        running_server(throwaway_server_settings(), Lines()) as server,
    ):
        await engine.publish(batch(map_store([1], T16)))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "inferencecache", "subscribe", "--once", "--dump"),
            *("--engine-endpoint", engine.endpoint, "--replay-endpoint", engine.replay_endpoint),
            *("--replica-id", REPLICA, "--model-id", MODEL, "--tenant-id", TENANT),
            *("--server", server.grpc_target, "--metrics-listen", "127.0.0.1:0"),
            *("--engine-metrics-url", ""),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        output, _ = await process.communicate()

        assert process.returncode == 0
        assert output.decode() == f"{REPLICA}\t\t{T16_KEY:016x}\tT1\n"
        assert matched(server, T16) == 16


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"replica_id": "pod"}, {"replica_id": "pod"}),
        ({"replica_id": "pod", "ranks_total": 2, "separate_ranks": True}, {"replica_id": "pod/1"}),
        (
            {"replica_id": "pod", "ranks_total": 2, "separate_ranks": True},
            {"replica_id": "pod", "rank_first": 1, "separate_ranks": True},
        ),
    ],
)
async def test_two_sources_cannot_be_one_replica(
    first: dict[str, object], second: dict[str, object]
) -> None:
    """Each would clear what the other has reported."""
    async with engine_sockets() as engine:
        apart = source(engine, replay=False, replica_id="other", ranks_total=2, separate_ranks=True)
        both = [source(engine, replay=False, **knobs) for knobs in (first, second)]
        Producer(producer_settings(apart, both[0], servers="127.0.0.1:1"))
        with pytest.raises(ConfigError, match=r"replica-id: 'pod(/1)?' .* one source"):
            Producer(producer_settings(apart, *both, servers="127.0.0.1:1"))


async def test_the_command_refuses_what_makes_no_sense() -> None:
    """A missing name ends with exit code 2 and one line that names it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "inferencecache", "subscribe", "--model-id", "m"),
        stderr=asyncio.subprocess.PIPE,
    )
    _, log = await process.communicate()

    assert process.returncode == 2
    assert log.decode().splitlines() == [
        "inferencecache: error: replica-id: '' is not allowed; expected a text that is not empty"
    ]
