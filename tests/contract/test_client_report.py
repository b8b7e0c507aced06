"""Both reporters over a real socket: order and proof of delivery."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from both_clients import DRIVERS, DrivenReporter, opening
from scripted_cache_server import ScriptedServer, scripted_server

from inferencecache.client import (
    CacheTier,
    CacheUpdate,
    ClientSettings,
    HeldPrefix,
    ReplicaRef,
    StatsReport,
)
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

R1 = ReplicaRef("t", "m", "r1")

OpenReporter = Callable[..., DrivenReporter]


def holding(*names: str, replica: ReplicaRef = R1) -> CacheUpdate:
    """Return an update of one prefix per name."""
    prefixes = [HeldPrefix(prefix_hash=name.encode(), token_count=16) for name in names]
    return CacheUpdate(replica=replica, hash_scheme="vllm", prefixes=prefixes)


@pytest.fixture(params=sorted(DRIVERS))
async def report_to(request: pytest.FixtureRequest) -> AsyncIterator[OpenReporter]:
    """Return what opens a reporter of either kind; its client is closed at the end."""
    async with opening(request.param) as open_client:
        yield lambda target, **options: open_client(target, **options).reporter()


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    """Run a scripted server."""
    async with scripted_server() as running:
        yield running


async def test_reports_share_one_stream_until_flushed(
    report_to: OpenReporter, server: ScriptedServer
) -> None:
    """Reports travel on one stream in order; flush ends it and gets the Ack."""
    reporter = report_to(server.target)

    for name in ("a", "b", "c"):
        await reporter.report(holding(name))
    waiting = reporter.unconfirmed
    await reporter.flush()

    assert waiting == 3
    assert reporter.unconfirmed == 0
    assert server.log == ["open", "report r1 a", "report r1 b", "report r1 c", "ack"]


async def test_flush_of_nothing_asks_nothing(
    report_to: OpenReporter, server: ScriptedServer
) -> None:
    """With nothing to prove, flush makes no call."""
    await report_to(server.target).flush()

    assert server.log == []


async def test_removals_keep_their_place(report_to: OpenReporter, server: ScriptedServer) -> None:
    """A removal arrives after the reports before it and before the reports after it."""
    reporter = report_to(server.target)

    await reporter.report(holding("a", "b"))
    await reporter.evict(R1, [b"a"])
    await reporter.report(holding("a"))
    await reporter.clear(R1)
    await reporter.report(holding("c"))
    await reporter.flush()

    assert server.log == [
        *("open", "report r1 a,b", "ack", "PREFIX_EVICTED r1 a"),
        *("open", "report r1 a", "ack", "ALL_CLEARED r1"),
        *("open", "report r1 c", "ack"),
    ]


async def test_many_removals_all_arrive(report_to: OpenReporter, server: ScriptedServer) -> None:
    """More removals than may be in flight at once arrive all."""
    names = [f"n{i}" for i in range(25)]
    reporter = report_to(server.target, settings=ClientSettings(events_in_flight_max=4))

    await reporter.evict(R1, [name.encode() for name in names])

    assert sorted(server.log) == sorted(f"PREFIX_EVICTED r1 {name}" for name in names)


async def test_more_reports_than_the_queue_holds(
    report_to: OpenReporter, server: ScriptedServer
) -> None:
    """A full queue makes report wait, not fail."""
    reporter = report_to(server.target, settings=ClientSettings(unsent_updates_max=1))

    for _ in range(200):
        await reporter.report(holding("x"))
    await reporter.flush()

    assert server.log.count("report r1 x") == 200


async def test_every_field_of_an_update_arrives(
    report_to: OpenReporter, server: ScriptedServer
) -> None:
    """An update arrives field by field, its time in microseconds."""
    got: list[pb.CacheStateUpdate] = []

    async def keep(updates: AsyncIterator[pb.CacheStateUpdate], _context: object) -> pb.Ack:
        got.extend([update async for update in updates])
        return pb.Ack(accepted=True)

    server.on_report = keep
    update = CacheUpdate(
        replica=R1,
        hash_scheme="vllm",
        prefixes=[
            HeldPrefix(
                block_hashes=[b"h"], block_token_counts=[16], tier=CacheTier.T2, adapter_id="sql"
            )
        ],
        stats=StatsReport(
            cache_memory_bytes=1,
            hit_rate=0.5,
            pressure=0.25,
            client_version="v",
            t2_hit_tokens=2,
            t2_query_tokens=3,
        ),
        adapter_id="chat",
        timestamp_ns=1_700_000_000_000_001_999,
    )

    reporter = report_to(server.target)
    await reporter.report(update)
    await reporter.flush()

    assert got == [
        pb.CacheStateUpdate(
            replica_id="r1",
            model_id="m",
            tenant_id="t",
            hash_scheme="vllm",
            timestamp_us=1_700_000_000_000_001,
            prefixes=[
                pb.PrefixEntry(
                    block_hashes=[b"h"],
                    block_token_counts=[16],
                    tier=pb.CACHE_TIER_T2,
                    adapter_id="sql",
                )
            ],
            stats=pb.ReplicaStats(
                replica_id="r1",
                cache_memory_bytes=1,
                hit_rate=0.5,
                pressure=0.25,
                client_version="v",
                t2_hit_tokens=2,
                t2_query_tokens=3,
            ),
            adapter_id="chat",
        )
    ]


async def test_leaving_the_block_flushes(server: ScriptedServer) -> None:
    """A reporter used as a context proves delivery at its end."""
    client = DRIVERS["awaited"](server.target)

    async with client.wrapped.reporter() as reporter:
        await reporter.report(holding("a"))
    await client.close()

    assert server.log == ["open", "report r1 a", "ack"]


async def test_leaving_the_blocking_block_flushes(server: ScriptedServer) -> None:
    """The blocking reporter does the same."""
    client = DRIVERS["blocking"](server.target)

    def run() -> None:
        with client.wrapped.reporter() as reporter:
            reporter.report(holding("a"))

    await asyncio.to_thread(run)
    await client.close()

    assert server.log == ["open", "report r1 a", "ack"]


async def test_leaving_the_block_by_an_error_keeps_it(server: ScriptedServer) -> None:
    """An error inside the block is not replaced by one about delivery."""
    client = DRIVERS["awaited"](server.target)

    async def fail_inside() -> None:
        async with client.wrapped.reporter() as reporter:
            await reporter.report(holding("a"))
            raise KeyError

    with pytest.raises(KeyError):
        await fail_inside()
    await client.close()

    assert "ack" not in server.log
