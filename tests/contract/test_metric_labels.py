"""Labels on a real metrics page follow the models, tenants and destinations that are there."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import grpc.aio
import pytest
from metrics_page import samples_of

from inferencecache.app.server import Server
from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.kinference.v1 import picker_pb2 as picker
from inferencecache.kinference.v1.picker_pb2_grpc import PickerStub
from inferencecache.settings.metrics import MetricsSettings
from inferencecache.settings.picker import PickerSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport.metric_labels import OTHER
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1.inferencecache_pb2_grpc import InferenceCacheStub

IDLE_S = 300
ENTRIES = "inferencecache_index_entries"
CALLS = "inferencecache_lookup_route_calls_total"
EVICTED = "inferencecache_tenant_evictions_total"
IN_FLIGHT = "inferencecache_picker_inflight"


@dataclass
class Rig:
    """A server with two labels of each kind, its clock, and clients.

    Attributes:
        server: The server.
        clock: Its time.
        cache: Calls the cache plane.
        picker: Calls the picker.
        http: Reads the page.
    """

    server: Server
    clock: ManualClock
    cache: InferenceCacheStub
    picker: PickerStub
    http: aiohttp.ClientSession

    async def series(self, name: str, label: str, after_s: int = 0) -> dict[str, float]:
        """Return a metric by the value of one label, as a scrape some time later shows it."""
        self.clock.advance_ns(after_s * NS_PER_S)
        async with self.http.get(f"{self.server.http_url}/metrics") as page:
            samples = samples_of(await page.text())
        sums: dict[str, float] = {}
        for sample in samples:
            if sample.name == name:
                value = sample.labels[label]
                sums[value] = sums.get(value, 0) + sample.value
        return sums

    async def report(self, model_id: str, *hashes: bytes, tenant_id: str = "t") -> None:
        """Report single prefixes of the only replica."""
        prefixes = [pb.PrefixEntry(prefix_hash=one, token_count=64) for one in hashes]
        update = pb.CacheStateUpdate(
            tenant_id=tenant_id,
            model_id=model_id,
            replica_id="a",
            hash_scheme="vllm",
            prefixes=prefixes,
        )
        assert (await self.cache.ReportCacheState(iter([update]))).accepted

    async def clear(self, model_id: str, *, tenant_id: str = "t") -> None:
        """Let the only replica lose everything."""
        await self.cache.PublishEvent(
            pb.CacheEvent(
                type=pb.CacheEvent.ALL_CLEARED,
                tenant_id=tenant_id,
                model_id=model_id,
                replica_id="a",
            )
        )

    async def look_up(self, model_id: str) -> None:
        """Ask once."""
        await self.cache.LookupRoute(
            pb.LookupRouteRequest(
                tenant_id="t", model_id=model_id, hash_scheme="vllm", prefix_hash=b"1"
            )
        )

    async def pick(self, model_id: str) -> int:
        """Begin a request and return its response_id."""
        body = b'{"model": "%s", "prompt": "hello"}' % model_id.encode()
        pushed = await self.picker.PushBody(iter([picker.BodyChunk(chunk=body)]))
        picked = await self.picker.Pick(picker.PickRequest(body_stream_id=pushed.stream_id))
        assert picked.response_id
        return int(picked.response_id)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """Run the server."""
    clock = ManualClock(1_700_000_000 * NS_PER_S)
    settings = throwaway_server_settings(
        metrics=MetricsSettings(labels_max=2, label_idle_ns=IDLE_S * NS_PER_S),
        picker=PickerSettings(endpoints="m0=10.0.0.1:80,m1=10.0.0.2:80,m2=10.0.0.3:80"),
    )
    server = Server(settings, clock=clock)
    await server.start()
    async with (
        grpc.aio.insecure_channel(server.grpc_target) as channel,
        aiohttp.ClientSession() as http,
    ):
        yield Rig(server, clock, InferenceCacheStub(channel), PickerStub(channel), http)
    await server.stop(drain_ns=0)


async def test_models_that_nobody_serves(rig: Rig) -> None:
    """A client that invents models fills one series, however many it invents."""
    await rig.report("m0", b"1")
    for number in range(50):
        await rig.look_up(f"invented-{number}")
    await rig.look_up("m0")
    assert await rig.series(CALLS, "model") == {"m0": 1, OTHER: 50}


async def test_models(rig: Rig) -> None:
    """A model that is gone stays at 0 for its time, then gives its label and series to another."""
    for model_id in ("m0", "m1", "m2"):
        await rig.report(model_id, b"1", b"2")
        await rig.look_up(model_id)
    assert await rig.series(ENTRIES, "model") == {"m0": 2, "m1": 2, OTHER: 2}
    assert await rig.series(CALLS, "model") == {"m0": 1, "m1": 1, OTHER: 1}

    await rig.clear("m0")
    for after_s in (0, 1, IDLE_S - 2):
        shown = await rig.series(ENTRIES, "model", after_s)
        assert shown == {"m0": 0, "m1": 2, OTHER: 2}
    assert await rig.series(ENTRIES, "model", 1) == {OTHER: 0, "m1": 2, "m2": 2}
    await rig.look_up("m2")
    await rig.look_up("m0")
    assert await rig.series(CALLS, "model") == {"m1": 1, "m2": 1, OTHER: 2}


async def test_tenants(rig: Rig) -> None:
    """The quota's counters of a tenant that is gone end, and those of another begin."""
    tenants = ("t0", "t1", "t2")
    quotas = [{"tenantID": tenant, "maxIndexEntries": 1} for tenant in tenants]
    async with rig.http.post(
        f"{rig.server.control_url}/policy", json={"version": 7, "tenants": quotas}
    ) as answer:
        assert answer.status < 300, await answer.text()
    for tenant in tenants:
        await rig.report("m", b"1", b"2", b"3", tenant_id=tenant)
    assert await rig.series(EVICTED, "tenant_id") == {"t0": 2, "t1": 2, OTHER: 2}

    await rig.clear("m", tenant_id="t0")
    for after_s in (0, IDLE_S - 1):
        shown = await rig.series(EVICTED, "tenant_id", after_s)
        assert shown == {"t0": 2, "t1": 2, OTHER: 2}
    assert await rig.series(EVICTED, "tenant_id", 1) == {"t1": 2, OTHER: 2}
    await rig.report("m", b"4", tenant_id="t2")
    assert await rig.series(EVICTED, "tenant_id") == {"t1": 2, "t2": 1, OTHER: 2}
    await rig.report("m", b"1", b"2", tenant_id="t0")
    assert await rig.series(EVICTED, "tenant_id") == {"t1": 2, "t2": 1, OTHER: 3}


async def test_destinations(rig: Rig) -> None:
    """One without requests is shown as 0, and makes room for a busy one only after its time."""
    names = {model: f"10.0.0.{number}:80" for number, model in enumerate(("m0", "m1", "m2"), 1)}
    ids = {model: await rig.pick(model) for model in names}
    first = await rig.series(IN_FLIGHT, "endpoint")
    assert sorted(first.values()) == [1, 1, 1]
    own = {name for name in first if name != OTHER}
    assert len(own) == 2

    done = next(model for model, name in names.items() if name in own or model in own)
    await rig.picker.ReportFinalToken(picker.ReportFinalTokenRequest(response_id=ids[done]))
    for after_s in (0, IDLE_S - 1):
        shown = await rig.series(IN_FLIGHT, "endpoint", after_s)
        assert set(shown) == set(first)
        assert sorted(shown.values()) == [0, 1, 1]
    assert sorted((await rig.series(IN_FLIGHT, "endpoint", 1)).values()) == [1, 1]
