"""A server that was told nothing says so: no hint, no blame on the caller's names, and "cold".

Field case D39: a producer connected to one of two servers fills that one; a restarted server has
forgotten everything. Whoever looks up there is not misconfigured.
"""

import aiohttp
import grpc.aio
from served_plane import chain_entry, keys, lookup, update

from inferencecache.app.server import Server, running_server
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.v1alpha1.inferencecache_pb2_grpc import InferenceCacheStub

CHAIN = keys(8)


async def report(server: Server) -> None:
    """Tell *server* about one chain of one replica, and of another replica, so that it counts."""
    async with grpc.aio.insecure_channel(server.grpc_target) as channel:
        updates = [update("a", chain_entry(CHAIN)), update("b", chain_entry(keys(1, salt=9)))]
        assert (await InferenceCacheStub(channel).ReportCacheState(iter(updates))).accepted


async def seen(server: Server) -> tuple[str, str]:
    """Return the reason code of a lookup of the chain, and what readiness says."""
    async with grpc.aio.insecure_channel(server.grpc_target) as channel:
        answer = await InferenceCacheStub(channel).LookupRoute(lookup(chain=CHAIN))
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{server.http_url}/readyz") as page,
    ):
        return answer.reason_code, page.headers["X-Inference-Cache-State"]


async def test_only_the_server_that_was_told_knows() -> None:
    """Two servers share nothing."""
    settings = throwaway_server_settings()
    async with running_server(settings) as told, running_server(settings) as other:
        await report(told)
        assert await seen(told) == ("PREFIX_MATCH", "warm")
        assert await seen(other) == ("NO_HINT", "cold")


async def test_restarted_server_is_cold_until_it_is_told_again() -> None:
    """It answers at once, honestly, and is as good as before after the next report."""
    async with running_server(throwaway_server_settings()) as first:
        await report(first)
        target = first.grpc_target
    again = throwaway_server_settings(grpc=GrpcSettings(bind_address=target))
    async with running_server(again) as second:
        assert await seen(second) == ("NO_HINT", "cold")
        await report(second)
        assert await seen(second) == ("PREFIX_MATCH", "warm")
