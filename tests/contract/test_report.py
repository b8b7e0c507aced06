"""ReportCacheState, PublishEvent and GetCacheState over a real channel."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from served_plane import (
    MODEL,
    NOW_NS,
    TENANT,
    ServedPlane,
    chain_entry,
    exact_entry,
    keys,
    serve,
    set_policy,
    update,
)

from inferencecache.clock import NS_PER_US
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.types import PROBE_TENANT_ID
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

CHAIN = keys(8)
NOW_US = NOW_NS // NS_PER_US


def event(kind: pb.CacheEvent.Type, replica_id: str = "A", **fields: object) -> pb.CacheEvent:
    """Return an event in the usual scope."""
    scope = {"tenant_id": TENANT, "model_id": MODEL}
    return pb.CacheEvent(type=kind, replica_id=replica_id, **{**scope, **fields})


async def state_of(served: ServedPlane, tenant_id: str = TENANT) -> pb.GetCacheStateResponse:
    """Return what GetCacheState says of the usual model."""
    request = pb.GetCacheStateRequest(tenant_id=tenant_id, model_id=MODEL)
    answer: pb.GetCacheStateResponse = await served.stub.GetCacheState(request)
    return answer


async def test_stream_is_acknowledged_at_its_end(served: ServedPlane) -> None:
    """Updates are applied one by one; half-closing gets the one acknowledgement."""
    ack = await served.report(update("A", chain_entry(CHAIN)), update("B", exact_entry(b"x", 1)))

    assert ack == pb.Ack(accepted=True)
    assert await served.report() == pb.Ack(accepted=True)
    assert (await state_of(served)).summary.total_prefixes == 9
    assert (served.recorder.updates, served.recorder.entries) == (2, 2)


async def test_each_update_counts_before_the_stream_ends(served: ServedPlane) -> None:
    """A producer's stream stays open for ever; what it sends is visible at once."""
    call = served.stub.ReportCacheState()
    await call.write(update("A", chain_entry(CHAIN)))
    await served.recorder.until(lambda: served.recorder.updates == 1)

    assert (await state_of(served)).summary.total_prefixes == 8

    await call.done_writing()
    assert await call == pb.Ack(accepted=True)


async def torn_down(served: ServedPlane, call: Any, replica_id: str, *, is_cancelled: bool) -> None:
    """Send an update on a stream that gets no further: by its deadline, or cancelled after it."""
    before = served.recorder.updates
    try:
        await call.write(update(replica_id, exact_entry(b"x", 1)))
        await served.recorder.until(lambda: served.recorder.updates > before or call.done())
        if is_cancelled:
            call.cancel()
        await call
    except (asyncio.CancelledError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
        assert call.cancelled() or await call.code() != grpc.StatusCode.OK


@pytest.mark.parametrize("end", ["cancel", "deadline"])
async def test_reset_stream_keeps_what_it_brought(
    served: ServedPlane, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A stream that is torn down gets no acknowledgement; its updates stay and nothing fails."""
    for number in range(20):
        time_s = 0.05
        while served.plane.index.entries == number:  # until there is time for an update to arrive
            call = served.stub.ReportCacheState(timeout=time_s if end == "deadline" else None)
            call.add_done_callback(lambda _: served.recorder.changed.set())
            await torn_down(served, call, f"r{number}", is_cancelled=end == "cancel")
            time_s *= 2

    assert served.plane.index.entries == 20
    assert served.recorder.failures == {}
    assert [r for r in caplog.records if r.levelname == "ERROR"] == []


async def test_reset_in_a_big_update_still_applies_it_whole(served: ServedPlane) -> None:
    """An update that has begun is finished even when its stream goes away meanwhile."""
    entries = [chain_entry(keys(2_000, salt=salt)) for salt in range(100)]
    call = served.stub.ReportCacheState()
    await call.write(update("A", *entries))
    while not served.plane.index.entries:
        await state_of(served)
    call.cancel()
    while served.plane.index.entries < 200_000:
        await state_of(served)

    served.plane.index.check_invariants()
    assert served.plane.index.entries == 200_000


async def test_unparsable_update_is_dropped_with_the_stream_alive(served: ServedPlane) -> None:
    """One message with a broken string costs that message and nothing else."""
    good = update("A", exact_entry(b"x", 64)).SerializeToString()
    broken = b"\x0a\x02\xff\xfe"

    async def messages() -> AsyncIterator[bytes]:
        for data in (broken, good, b"\xff\xff\xff", good):
            yield data

    report = served.channel.stream_unary("/inferencecache.v1alpha1.InferenceCache/ReportCacheState")

    assert pb.Ack.FromString(await report(messages())) == pb.Ack(accepted=True)
    assert served.recorder.unparsable == {"ReportCacheState": 2}
    assert served.plane.index.entries == 1


async def test_five_megabyte_update_is_accepted(served: ServedPlane) -> None:
    """A big update of plain entries is read in slices and all of it is there afterwards."""
    entries = [exact_entry(key + b"-" * 32, 16) for key in keys(125_000)]
    big = update("A", *entries)
    assert big.ByteSize() > 5_000_000

    await served.report(big)

    assert (await state_of(served)).summary.total_prefixes == 125_000
    served.plane.index.check_invariants()


async def test_message_beyond_the_limit_is_refused() -> None:
    """The receive limit is a setting; what is larger ends in RESOURCE_EXHAUSTED."""
    settings = GrpcSettings(bind_address="127.0.0.1:0", receive_bytes_max=10_000)
    async with serve(settings=settings) as served:
        await served.report(update("A", *(exact_entry(key, 1) for key in keys(100))))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await served.report(update("A", *(exact_entry(key, 1) for key in keys(2_000))))

    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_entry_without_scheme_is_dropped_but_statistics_stay(served: ServedPlane) -> None:
    """An empty hash_scheme is no domain; the numbers of the replica still count."""
    stats = pb.ReplicaStats(cache_memory_bytes=9_999, client_version="lmcache-1.2")
    await served.report(update("A", exact_entry(b"x", 64), hash_scheme="", stats=stats))

    state = await state_of(served)

    assert state.summary.total_prefixes == 0
    assert [(r.replica_id, r.cache_memory_bytes) for r in state.replicas] == [("A", 9_999)]


async def test_state_shows_every_field(served: ServedPlane) -> None:
    """The replicas come sorted, with all their numbers, the client's version included."""
    stats = pb.ReplicaStats(
        replica_id="ignored",
        cache_memory_bytes=2_048,
        hit_rate=0.5,
        pressure=0.25,
        client_version="1.2",
        t2_hit_tokens=600,
        t2_query_tokens=1_000,
    )
    await served.report(
        update("B", exact_entry(b"x", 1)), update("A", stats=stats), update("C", stats=stats)
    )

    state = await state_of(served)

    assert [replica.replica_id for replica in state.replicas] == ["A", "C"]
    stats.replica_id = "A"
    assert state.replicas[0] == stats
    assert state.summary == pb.CacheSummary(total_prefixes=1)


async def test_state_of_what_nobody_knows_is_empty(served: ServedPlane) -> None:
    """The summary is present all the same."""
    state = await state_of(served, "nobody")

    assert state.HasField("summary")
    assert state == pb.GetCacheStateResponse(summary=pb.CacheSummary())


async def test_probe_tenant_can_be_neither_written_nor_read(served: ServedPlane) -> None:
    """Reports and events of the reserved tenant are acknowledged and skipped."""
    reserved = {"tenant_id": PROBE_TENANT_ID}
    await served.report(update("A", exact_entry(b"x", 64), stats=pb.ReplicaStats(), **reserved))

    assert not served.plane.index.has_tenant(PROBE_TENANT_ID)
    assert await state_of(served, PROBE_TENANT_ID) == pb.GetCacheStateResponse(
        summary=pb.CacheSummary()
    )
    ack = await served.stub.PublishEvent(event(pb.CacheEvent.ALL_CLEARED, **reserved))
    assert ack == pb.Ack(accepted=True)


async def test_eviction_removes_one_replica_only(served: ServedPlane) -> None:
    """The other holder of the prefix is still found."""
    await served.report(*(update(r, exact_entry(b"p", 64)) for r in "AB"), update("C"))

    ack = await served.stub.PublishEvent(event(pb.CacheEvent.PREFIX_EVICTED, prefix_hash=b"p"))

    assert ack == pb.Ack(accepted=True)
    answer = await served.look_up(prefix_hash=b"p")
    assert [score.replica_id for score in answer.replica_scores] == ["B"]


async def test_eviction_is_narrowed_by_its_adapter(served: ServedPlane) -> None:
    """With an adapter one partition loses the prefix, without one all do."""
    set_policy(served.plane, affinity_routing=False)
    await served.report(update("A", exact_entry(b"p", 64), exact_entry(b"p", 64, adapter_id="sql")))

    await served.stub.PublishEvent(
        event(pb.CacheEvent.PREFIX_EVICTED, prefix_hash=b"p", adapter_id="sql")
    )

    assert (await served.look_up(prefix_hash=b"p")).reason_code == "PREFIX_MATCH"
    assert (await served.look_up(prefix_hash=b"p", adapter_id="sql")).reason_code == "NO_HINT"

    await served.stub.PublishEvent(event(pb.CacheEvent.PREFIX_EVICTED, prefix_hash=b"p"))

    assert served.plane.index.entries == 0


@pytest.mark.parametrize("kind", [0, 1, 99, -1])
async def test_events_that_mean_nothing_are_acknowledged(served: ServedPlane, kind: int) -> None:
    """PREFIX_ADDED, unspecified and unknown types change nothing and are no error."""
    await served.report(update("A", exact_entry(b"p", 64)))

    ack = await served.stub.PublishEvent(event(kind, prefix_hash=b"p"))

    assert ack == pb.Ack(accepted=True)
    assert served.plane.index.entries == 1
    assert sum(served.recorder.events.values()) == 1


async def test_report_older_than_the_last_clear_is_dropped(served: ServedPlane) -> None:
    """A stream of the old incarnation that flushes late does not bring it back."""
    call = served.stub.ReportCacheState()
    await served.stub.PublishEvent(event(pb.CacheEvent.ALL_CLEARED, timestamp_us=NOW_US - 1_000))
    await call.write(update("A", chain_entry(CHAIN), timestamp_us=NOW_US - 2_000))
    await call.write(update("A", exact_entry(b"new", 64), timestamp_us=NOW_US - 500))
    await call.done_writing()
    await call

    assert served.plane.index.entries == 1
    assert served.plane.index.counters.fenced_updates == 1


async def test_calls_that_have_no_substance_yet(served: ServedPlane) -> None:
    """Disaggregated routing has no hint, and there are no templates."""
    pd = await served.stub.LookupPDRoute(pb.LookupPDRouteRequest(model_id=MODEL))
    template = await served.stub.RenderTemplate(pb.RenderTemplateRequest(template_ref="t"))

    assert pd == pb.LookupPDRouteResponse(reason_code="NO_HINT")
    assert template == pb.RenderTemplateResponse(reason_code="TEMPLATE_NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "request_message", "word"),
    [
        ("StreamCacheEvents", pb.StreamEventsRequest(), "events"),
        ("StreamMetrics", pb.StreamMetricsRequest(), "/metrics"),
    ],
)
async def test_streams_are_not_offered(
    served: ServedPlane, method: str, request_message: object, word: str
) -> None:
    """UNIMPLEMENTED, in words that say what to do instead or what is missing."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        assert [message async for message in getattr(served.stub, method)(request_message)] == []

    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert word in caught.value.details()
    assert served.recorder.failures == {}
