"""Both reporters over a real socket: order, proof of delivery, clear errors."""

import asyncio
from collections.abc import AsyncIterator, Callable

import grpc
import pytest
from both_clients import DRIVERS, DrivenReporter
from scripted_cache_server import ScriptedServer, scripted_server

from inferencecache.client import (
    CacheTier,
    CacheUpdate,
    ClientSettings,
    DeliveryError,
    HeldPrefix,
    ReplicaRef,
    StatsReport,
)
from inferencecache.errors import InvalidRequestError
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

R1 = ReplicaRef("t", "m", "r1")

OpenReporter = Callable[..., DrivenReporter]


def holding(*names: str, replica: ReplicaRef = R1) -> CacheUpdate:
    """Return an update of one prefix per name."""
    prefixes = [HeldPrefix(prefix_hash=name.encode(), token_count=16) for name in names]
    return CacheUpdate(replica=replica, hash_scheme="vllm", prefixes=prefixes)


async def prove(reporter: DrivenReporter, *updates: CacheUpdate) -> None:
    """Report and flush."""
    for update in updates:
        await reporter.report(update)
    await reporter.flush()


@pytest.fixture(params=sorted(DRIVERS))
async def report_to(request: pytest.FixtureRequest) -> AsyncIterator[OpenReporter]:
    """Return what opens a reporter of either kind; its client is closed at the end."""
    opened = []

    def open_reporter(target: str, **options: object) -> DrivenReporter:
        client = DRIVERS[request.param](target, **options)
        opened.append(client)
        return client.reporter()

    yield open_reporter
    for client in opened:
        await client.close()


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


async def test_absent_server_is_one_clear_line(
    report_to: OpenReporter, server: ScriptedServer
) -> None:
    """A report to a server that is not there names the address and the status in one line."""
    await server.kill()
    reporter = report_to(server.target)

    with pytest.raises(DeliveryError) as caught:
        await prove(reporter, holding("a"))

    assert str(caught.value).startswith(f"cache server at {server.target} is gone: UNAVAILABLE: ")
    assert "\n" not in str(caught.value)
    assert caught.value.unconfirmed == 1


async def test_killed_server_is_noticed(report_to: OpenReporter, server: ScriptedServer) -> None:
    """When the server dies under an open stream, the next proof fails and says what is open."""
    reporter = report_to(server.target)
    await reporter.report(holding("a"))
    await server.entered.wait()

    await server.kill()
    with pytest.raises(DeliveryError) as caught:
        await reporter.flush()

    assert caught.value.status in {"UNAVAILABLE", "CANCELLED"}
    assert caught.value.unconfirmed == 1
    assert reporter.unconfirmed == 0


async def test_report_after_death_fails_in_bounded_time(
    report_to: OpenReporter, server: ScriptedServer
) -> None:
    """Reporting on and on to a dead server ends in an error, also with a full queue."""
    reporter = report_to(server.target, settings=ClientSettings(unsent_updates_max=2))
    await reporter.report(holding("a"))
    await server.entered.wait()
    await server.kill()

    with pytest.raises(DeliveryError):
        await prove(reporter, *[holding("b")] * 1_000)


async def test_reporter_recovers(report_to: OpenReporter, server: ScriptedServer) -> None:
    """After an error the next report opens a new stream, to the server's successor too."""
    settings = ClientSettings(reconnect_initial_ns=10_000_000, reconnect_max_ns=100_000_000)
    reporter = report_to(server.target, settings=settings)
    await reporter.report(holding("a"))
    await server.entered.wait()
    await server.kill()
    with pytest.raises(DeliveryError):
        await reporter.flush()
    again = ScriptedServer()
    await again.start(server.target)

    delivered = False
    while not delivered:
        try:
            await reporter.report(holding("b"))
            await reporter.flush()
        except DeliveryError:
            continue
        delivered = True
    await again.kill()

    assert again.log == ["open", "report r1 b", "ack"]


async def test_early_ack_is_no_proof(report_to: OpenReporter, server: ScriptedServer) -> None:
    """A server that ends the stream before the reports do has not proved anything."""
    server.acks_after = 1
    reporter = report_to(server.target, settings=ClientSettings(unsent_updates_max=1))

    with pytest.raises(DeliveryError) as caught:
        await prove(reporter, *[holding("a")] * 1_000)

    assert caught.value.status in {"ENDED_EARLY", "STREAM_BROKEN"}
    assert "is gone" in str(caught.value)


@pytest.mark.parametrize("step", ["flush", "clear"])
async def test_refusal_is_an_error(
    report_to: OpenReporter, server: ScriptedServer, step: str
) -> None:
    """An Ack that does not accept raises with the server's reason."""
    server.ack = pb.Ack(accepted=False, reason_code="THROTTLED")
    reporter = report_to(server.target)

    call = prove(reporter, holding("a")) if step == "flush" else reporter.clear(R1)
    with pytest.raises(DeliveryError, match="did not take the report: NOT_ACCEPTED: THROTTLED"):
        await call


async def test_failed_removal_is_an_error(report_to: OpenReporter, server: ScriptedServer) -> None:
    """A removal that ends with a status raises it."""
    server.event_status = grpc.StatusCode.PERMISSION_DENIED

    with pytest.raises(DeliveryError) as caught:
        await report_to(server.target).evict(R1, [b"a", b"b"])

    assert (caught.value.status, caught.value.unconfirmed) == ("PERMISSION_DENIED", 2)


async def test_silent_server_is_an_error(report_to: OpenReporter, server: ScriptedServer) -> None:
    """A server that never acknowledges costs the timeout, then an error."""

    async def hang(updates: AsyncIterator[pb.CacheStateUpdate], _context: object) -> pb.Ack:
        await server.released.wait()
        return pb.Ack(accepted=True)

    server.on_report = hang
    reporter = report_to(server.target, settings=ClientSettings(delivery_timeout_ns=30_000_000))

    with pytest.raises(DeliveryError) as caught:
        await prove(reporter, holding("a"))

    assert caught.value.status == "DEADLINE_EXCEEDED"


async def test_closed_connection_is_an_error(
    report_to: OpenReporter, server: ScriptedServer
) -> None:
    """Reports over a closed connection fail clearly, of either kind."""
    reporter = report_to(server.target)
    await reporter.close()
    client_of = DRIVERS["awaited"](server.target)
    late = client_of.reporter()
    await client_of.close()

    with pytest.raises(DeliveryError) as caught:
        await late.report(holding("a"))
    with pytest.raises(DeliveryError) as caught_event:
        await late.clear(R1)

    assert caught.value.status == "CLOSED"
    assert caught_event.value.status == "CLOSED"


@pytest.mark.parametrize(
    "update",
    [
        holding("a", replica=ReplicaRef("\ud800", "m", "r1")),
        CacheUpdate(
            replica=R1,
            hash_scheme="vllm",
            prefixes=[HeldPrefix(prefix_hash=b"a", token_count=2**31)],
        ),
        CacheUpdate(replica=R1, hash_scheme="vllm", timestamp_ns=10**30),
    ],
)
async def test_update_outside_the_wire_is_refused(
    report_to: OpenReporter, server: ScriptedServer, update: CacheUpdate
) -> None:
    """What the wire cannot carry is the caller's error, and the line stays usable."""
    reporter = report_to(server.target)
    await reporter.report(holding("a"))

    with pytest.raises(InvalidRequestError):
        await reporter.report(update)
    await reporter.flush()

    assert server.log == ["open", "report r1 a", "ack"]


async def test_removal_outside_the_wire_is_refused(
    report_to: OpenReporter, server: ScriptedServer
) -> None:
    """A hash that is no bytes is the caller's error."""
    with pytest.raises(InvalidRequestError):
        await report_to(server.target).evict(R1, ["text"])

    assert server.log == []


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


async def test_cancelled_report_stays_cancelled(server: ScriptedServer) -> None:
    """Cancelling the task that flushes is not turned into an error of delivery."""

    async def hang(updates: AsyncIterator[pb.CacheStateUpdate], _context: object) -> pb.Ack:
        server.entered.set()
        await server.released.wait()
        return pb.Ack(accepted=True)

    server.on_report = hang
    client = DRIVERS["awaited"](server.target)
    reporter = client.wrapped.reporter()
    await reporter.report(holding("a"))
    await server.entered.wait()
    flush = asyncio.ensure_future(reporter.flush())
    while not reporter._lock.locked():
        await asyncio.wait([flush], timeout=0)

    flush.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flush
    await client.close()
