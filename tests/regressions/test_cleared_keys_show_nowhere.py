"""Whoever looks right after a clear sees what is held, however much there is left to reclaim."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import grpc.aio
import pytest
from metrics_page import samples_of
from served_plane import keys

from inferencecache.app.server import Server, running_server
from inferencecache.clock import NS_PER_S
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.process import ProcessSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1.inferencecache_pb2_grpc import InferenceCacheStub

OWN, SHARED = keys(400, salt=1), keys(50, salt=2)
Look = Callable[[Server, InferenceCacheStub], Awaitable[float]]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """Run a server that frees a block at a time, and on its own only in an hour."""
    settings = throwaway_server_settings(
        index=IndexSettings(slice_blocks=1),
        process=ProcessSettings(reclaim_interval_ns=3_600 * NS_PER_S),
    )
    async with running_server(settings) as running:
        yield running


async def in_cache_state(_server: Server, stub: InferenceCacheStub) -> float:
    """Return what GetCacheState counts."""
    request = pb.GetCacheStateRequest(tenant_id="t", model_id="m")
    return (await stub.GetCacheState(request)).summary.total_prefixes


async def in_snapshot(server: Server, _stub: InferenceCacheStub) -> float:
    """Return what /snapshot counts, in total and for the tenant."""
    page = json.loads(await _text(f"{server.control_url}/snapshot"))
    assert [row["indexEntries"] for row in page["tenants"]] == [page["totalPrefixes"]]
    return page["totalPrefixes"]


async def in_metrics(server: Server, _stub: InferenceCacheStub) -> float:
    """Return what /metrics counts, in total and for the model."""
    page = samples_of(await _text(f"{server.http_url}/metrics"))
    numbers = {sample.name: sample.value for sample in page}
    assert numbers["inferencecache_index_entries"] == numbers["inferencecache_index_prefixes"]
    return numbers["inferencecache_index_prefixes"]


@pytest.mark.parametrize("look", [in_cache_state, in_snapshot, in_metrics])
async def test_first_look_after_a_clear(server: Server, look: Look) -> None:
    """Keys that nobody holds any more are not counted, those of another replica are."""
    async with grpc.aio.insecure_channel(server.grpc_target) as channel:
        stub = InferenceCacheStub(channel)
        await _report(stub, "a", [*OWN, *SHARED])
        await _report(stub, "b", SHARED)
        before = await look(server, stub)
        event = pb.CacheEvent(
            type=pb.CacheEvent.ALL_CLEARED, tenant_id="t", model_id="m", replica_id="a"
        )
        await stub.PublishEvent(event)
        was_pending = server.plane.index.has_pending_reclaim
        after = await look(server, stub)

    assert (before, was_pending, after) == (450, True, 50)


async def _report(stub: InferenceCacheStub, replica_id: str, hashes: list[bytes]) -> None:
    """Report blocks one by one, so that each is a hold of its own."""
    update = pb.CacheStateUpdate(
        tenant_id="t",
        model_id="m",
        replica_id=replica_id,
        hash_scheme="vllm",
        prefixes=[pb.PrefixEntry(prefix_hash=one, token_count=16) for one in hashes],
    )
    assert (await stub.ReportCacheState(iter([update]))).accepted


async def _text(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url) as page:
        return await page.text()
