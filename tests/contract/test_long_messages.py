"""Messages that would take long to parse: what becomes of them, and that nothing of them stays."""

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest
from served_plane import (
    MODEL,
    SERVICE_NAME,
    TENANT,
    ServedPlane,
    chain_entry,
    keys,
    lookup,
    new_plane,
    serve,
    update,
)

from inferencecache.index import DropReason
from inferencecache.service.access import Access
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.index import IndexSettings
from inferencecache.transport.cache_handler import OpenGuard
from inferencecache.types import StatsReport
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

MANY = keys(40_000)
CALLS = 5


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Let nothing be freed but by its last reference, and count what is not."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


def messages_kept() -> int:
    """Return how many updates there are in the library's form."""
    return sum(type(each).__name__ == "CacheStateUpdate" for each in gc.get_objects())


def long_report(replica_id: str) -> bytes:
    """Return an update of one entry per block."""
    entries = (pb.PrefixEntry(prefix_hash=each, token_count=64) for each in MANY)
    return update(replica_id, *entries).SerializeToString()


async def report(served: ServedPlane, *messages: bytes) -> None:
    """Send one stream of bytes."""
    await served.channel.stream_unary(f"/{SERVICE_NAME}/ReportCacheState")(iter(messages))


@pytest.mark.usefixtures("no_collector")
async def test_nothing_stays_of_reports_whose_callers_go_away() -> None:
    """Neither the message nor what was made of it, while the update itself is finished."""
    settings = IndexSettings(slice_blocks=64)
    reports = [long_report(f"r{number}") for number in range(CALLS + 1)]
    async with serve(new_plane(index=settings)) as served:
        entries = served.plane.index
        kept = messages_kept()
        for number, data in enumerate(reports):
            if number == 1:
                before, _ = tracemalloc.get_traced_memory()
            method = served.channel.stream_unary(f"/{SERVICE_NAME}/ReportCacheState")
            call = method(iter([data]))
            while entries.entries == number * len(MANY):
                await asyncio.sleep(0)
            call.cancel()
            while entries.entries < (number + 1) * len(MANY):
                await asyncio.sleep(0)
        after, _ = tracemalloc.get_traced_memory()

        assert messages_kept() == kept
        assert after - before < CALLS * len(reports[0]) / 2


class RefusingGuard(OpenGuard):
    """Lets nobody write for a tenant, which is known only once the update is read."""

    def allows(self, _method: str, _context: Any, access: Access, _tenant_id: str) -> bool:
        """Tell whether it is a read."""
        return access is Access.READ


@pytest.mark.usefixtures("no_collector")
async def test_nothing_stays_of_reports_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exceptions that end a call hold the frames that had it."""
    monkeypatch.setattr(OpenGuard, "allows", RefusingGuard.allows)
    data = long_report("r1")
    async with serve() as served:
        for number in range(CALLS + 1):
            if number == 1:
                before, _ = tracemalloc.get_traced_memory()
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await report(served, data)
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        del caught
        after, _ = tracemalloc.get_traced_memory()

        assert after - before < CALLS * len(data) / 2


@pytest.fixture
async def served() -> AsyncIterator[ServedPlane]:
    """Return a server that parses little in one go."""
    settings = GrpcSettings(
        bind_address="127.0.0.1:0", parse_bytes_max=1_024, update_blocks_max=40_000
    )
    async with serve(settings=settings) as running:
        yield running


@pytest.mark.parametrize(
    "method", ["GetCacheState", "PublishEvent", "RenderTemplate", "LookupPDRoute"]
)
async def test_a_long_message_of_a_short_kind_is_refused(served: ServedPlane, method: str) -> None:
    """Unparsed, with a status that says the limit; one of that length is not."""
    await served.send_bytes(method, b"\x78\x01" * 512)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.send_bytes(method, b"\x78\x01" * 513)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == (
        f"{method}: the request is not a valid message of at most 1,024 bytes"
    )
    assert served.recorder.unparsable == {method: 1}


@pytest.mark.parametrize("method", ["StreamCacheEvents", "StreamMetrics"])
async def test_a_long_message_for_a_stream_of_answers_is_refused(
    served: ServedPlane, method: str
) -> None:
    """Before it is said that there is no such stream."""
    call = served.channel.unary_stream(f"/{SERVICE_NAME}/{method}")
    for size, code in ((512, "UNIMPLEMENTED"), (513, "INVALID_ARGUMENT")):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(b"\x78\x01" * size).read()
        assert caught.value.code().name == code


async def test_a_long_report_says_what_a_short_one_does(served: ServedPlane) -> None:
    """Names, adapter and statistics behind its entries, and chains of any length."""
    chain = keys(20_000, salt=1)
    sent = update(
        "r1",
        *(pb.PrefixEntry(prefix_hash=each, token_count=64) for each in MANY[:10_000]),
        chain_entry(chain, prefix_hash=b"whole", token_count=320_000),
        adapter_id="a",
        stats=pb.ReplicaStats(hit_rate=0.5),
    )
    data = sent.SerializeToString()
    names = pb.CacheStateUpdate()
    names.CopyFrom(sent)
    names.ClearField("prefixes")
    entries = pb.CacheStateUpdate(prefixes=sent.prefixes).SerializeToString()
    assert len(entries) < len(data)
    await report(served, entries + names.SerializeToString())

    assert served.plane.index.entries == 30_001
    assert (served.recorder.updates, served.recorder.entries) == (1, 10_001)
    for asked in (
        lookup(prefix_hash=MANY[9_999], adapter_id="a"),
        lookup(prefix_hash=b"whole", adapter_id="a"),
        lookup(chain=chain, adapter_id="a"),
    ):
        answer = await served.stub.LookupRoute(asked)
        assert answer.reason_code == "PREFIX_MATCH"
    assert answer.replica_scores[0].matched_tokens == 16 * len(chain)
    state = await served.stub.GetCacheState(
        pb.GetCacheStateRequest(tenant_id=TENANT, model_id=MODEL)
    )
    assert [(each.replica_id, each.hit_rate) for each in state.replicas] == [("r1", 0.5)]


@pytest.mark.parametrize(
    "data",
    [
        b"\x32\x00" * 40_001,
        update("r1", *[pb.PrefixEntry(prefix_hash=b"h", token_count=1)] * 40_001),
        update("r1", chain_entry(keys(40_001))),
        update("r1", chain_entry(keys(20_000)), chain_entry(keys(20_000, salt=1))),
        b"\x32\x03\x0a\x05a" * 1_000,
        b"\x3a\x80\x10" + b"\x78\x01" * 1_024 + b"\xff",
    ],
)
async def test_a_report_that_carries_too_much_is_as_one_that_does_not_parse(
    served: ServedPlane, data: bytes | pb.CacheStateUpdate
) -> None:
    """Nothing of it is applied, it is counted, and the stream goes on."""
    broken = data if isinstance(data, bytes) else data.SerializeToString()
    await report(served, broken, update("r2", chain_entry(keys(3))).SerializeToString())

    assert served.recorder.unparsable == {"ReportCacheState": 1}
    assert (served.plane.index.entries, served.recorder.updates) == (3, 1)


@pytest.mark.parametrize(
    ("chain", "counts", "reason"),
    [
        ([*keys(30_000), b""], [1] * 30_001, DropReason.EMPTY_HASH),
        (keys(30_000), [1] * 29_999 + [-1], DropReason.NEGATIVE_COUNT),
        (keys(30_000), [1] * 29_999, DropReason.MALFORMED_CHAIN),
        (keys(30_000), [1] * 30_001, DropReason.MALFORMED_CHAIN),
    ],
)
async def test_a_long_chain_is_stored_whole_or_not_at_all(
    served: ServedPlane, chain: list[bytes], counts: list[int], reason: DropReason
) -> None:
    """Whichever of its slices is at fault; its neighbours are stored."""
    bad = pb.PrefixEntry(block_hashes=chain, block_token_counts=counts)
    good = chain_entry(keys(3, salt=7))
    await report(served, update("r1", good, bad, good).SerializeToString())

    assert served.plane.index.entries == 3
    assert served.plane.index.counters.drops == {reason: 1}


async def test_a_version_that_is_none_is_dropped() -> None:
    """And counted like other names that are too long; the numbers beside it are kept."""
    async with serve() as served:
        for version in ("v" * 4_096, "v" * 4_097, "é" * 2_049):
            stats = pb.ReplicaStats(client_version=version, hit_rate=0.5)
            await served.report(update("r1", stats=stats))
            (record,) = served.plane.cache_state(TENANT, MODEL).replicas
            expected = version if len(version.encode()) == 4_096 else ""
            assert record.stats == StatsReport(client_version=expected, hit_rate=0.5)
        assert served.plane.index.counters.drops == {DropReason.IDENTIFIER_TOO_LONG: 2}


async def test_many_records_are_shown_in_order() -> None:
    """However many slices they are written in."""
    async with serve() as served:
        reports = [update(f"r{number:05}", stats=pb.ReplicaStats()) for number in range(1_100)]
        await served.report(*reports)
        state = await served.stub.GetCacheState(
            pb.GetCacheStateRequest(tenant_id=TENANT, model_id=MODEL)
        )
        assert [each.replica_id for each in state.replicas] == [r.replica_id for r in reports]
        assert state.summary.total_prefixes == 0
