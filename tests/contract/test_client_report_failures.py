"""Both reporters over a real socket: errors are clear, and nothing unproved passes as proved."""

import asyncio
from collections.abc import AsyncIterator, Callable

import grpc
import pytest
from both_clients import DRIVERS, DrivenReporter, opening
from scripted_cache_server import NO_MESSAGE, ScriptedServer, scripted_server

from inferencecache.client import (
    CacheUpdate,
    ClientSettings,
    DeliveryError,
    HeldPrefix,
    ReplicaRef,
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
    async with opening(request.param) as open_client:
        yield lambda target, **options: open_client(target, **options).reporter()


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    """Run a scripted server."""
    async with scripted_server() as running:
        yield running


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


@pytest.mark.parametrize("step", ["flush", "clear"])
async def test_an_answer_that_is_no_ack_is_an_error(
    report_to: OpenReporter, server: ScriptedServer, step: str
) -> None:
    """It proves nothing, and whoever reports can try again."""
    server.ack = NO_MESSAGE
    reporter = report_to(server.target)

    call = prove(reporter, holding("a")) if step == "flush" else reporter.clear(R1)
    with pytest.raises(DeliveryError) as caught:
        await call
    assert (caught.value.status, caught.value.unconfirmed) == ("INTERNAL", 1)

    server.ack = pb.Ack(accepted=True)
    await prove(reporter, holding("a"))


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


@pytest.mark.parametrize("kind", sorted(DRIVERS))
async def test_closed_connection_is_an_error(server: ScriptedServer, kind: str) -> None:
    """Reports and removals over a closed connection fail clearly."""
    client = DRIVERS[kind](server.target)
    reporter = client.reporter()
    await client.close()

    with pytest.raises(DeliveryError) as caught:
        await reporter.report(holding("a"))
    with pytest.raises(DeliveryError) as caught_event:
        await reporter.clear(R1)

    assert caught.value.status == "CLOSED"
    assert caught_event.value.status == "CLOSED"


@pytest.mark.parametrize("kind", sorted(DRIVERS))
async def test_closing_during_a_flush_is_an_error(server: ScriptedServer, kind: str) -> None:
    """Closing the connection ends a flush under way with an error, not with silence."""

    async def hang(updates: AsyncIterator[pb.CacheStateUpdate], _context: object) -> pb.Ack:
        async for _ in updates:
            pass
        server.entered.set()
        await server.released.wait()
        return pb.Ack(accepted=True)

    server.on_report = hang
    client = DRIVERS[kind](server.target)
    flush = asyncio.ensure_future(prove(client.reporter(), holding("a")))
    await server.entered.wait()

    await client.close()
    with pytest.raises(DeliveryError) as caught:
        await flush

    assert caught.value.status in {"CLOSED", "CANCELLED"}


@pytest.mark.parametrize("kind", sorted(DRIVERS))
async def test_dropping_the_rest_frees_the_stream(server: ScriptedServer, kind: str) -> None:
    """Closing a reporter drops what is unconfirmed; there is nothing left to prove."""
    client = DRIVERS[kind](server.target)
    reporter = client.reporter()
    await reporter.report(holding("a"))
    await server.entered.wait()

    await reporter.close()
    unconfirmed = reporter.unconfirmed
    await reporter.flush()
    await client.close()

    assert unconfirmed == 0
