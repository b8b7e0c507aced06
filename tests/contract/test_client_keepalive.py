"""A peer that falls silent without closing is found by pings, not by waiting."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from both_clients import DRIVERS, Open
from scripted_cache_server import ScriptedServer, scripted_server
from silent_proxy import SilentProxy

from inferencecache.client import (
    CacheUpdate,
    ClientSettings,
    DeliveryError,
    FailOpenCause,
    LookupQuery,
    ReplicaRef,
)

QUICK = ClientSettings(
    keepalive_interval_ns=1_000_000_000,
    keepalive_timeout_ns=100_000_000,
    delivery_timeout_ns=100_000_000_000,
)
"""The fastest pings allowed, and no other timeout that could end a test."""


@pytest.fixture(params=sorted(DRIVERS))
def open_client(request: pytest.FixtureRequest) -> Open:
    """Return what opens a client of either kind."""
    return DRIVERS[request.param]


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    """Run a scripted server."""
    async with scripted_server() as running:
        yield running


async def test_silent_peer_breaks_an_open_stream(open_client: Open, server: ScriptedServer) -> None:
    """A stream whose peer fell silent fails within interval and timeout."""
    async with SilentProxy.before(server.target) as proxy:
        client = open_client(proxy.target, settings=QUICK)
        reporter = client.reporter()
        await reporter.report(CacheUpdate(replica=ReplicaRef("t", "m", "r"), hash_scheme="s"))
        await server.entered.wait()

        proxy.fall_silent()
        with pytest.raises(DeliveryError) as caught:
            await reporter.flush()
        await client.close()

    assert caught.value.status == "UNAVAILABLE"


async def test_silent_peer_breaks_a_lookup(open_client: Open, server: ScriptedServer) -> None:
    """A lookup without a tight deadline ends too, without a hint."""
    server.route = server.hang
    query = LookupQuery(tenant_id="t", model_id="m", hash_scheme="s")
    async with SilentProxy.before(server.target) as proxy:
        client = open_client(proxy.target, settings=QUICK)
        lookup = asyncio.ensure_future(client.lookup(query, deadline_ms=100_000))
        await server.entered.wait()

        proxy.fall_silent()
        result = await lookup
        await client.close()

    assert result.cause is FailOpenCause.UNREACHABLE
