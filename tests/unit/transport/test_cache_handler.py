"""What the handler counts when something goes wrong halfway."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from served_plane import Recorder, chain_entry, keys, lookup, new_plane, update

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.service import CachePlane
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.index import IndexSettings
from inferencecache.transport import cache_handler
from inferencecache.transport.boundary import FailureLog
from inferencecache.transport.cache_handler import CacheHandler, HandlerParts
from inferencecache.transport.lookup_stages import LookupStages
from inferencecache.types import ReasonCode
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

BLOCKS = keys(4_000)


class Patient:
    """The context of a call without a deadline."""

    def time_remaining(self) -> None:
        """Return that there is none."""


def made(recorder: Recorder, plane: CachePlane) -> CacheHandler:
    """Return a handler that counts at *recorder*."""
    clock = ManualClock()
    return CacheHandler(
        HandlerParts(
            plane=plane,
            observer=recorder,
            failures=FailureLog(recorder, recorder, clock, NS_PER_S),
            settings=GrpcSettings(ingest_slice_entries=10_000),
            stages=LookupStages(clock, 1_000),
        )
    )


async def ask(handler: CacheHandler) -> pb.LookupRouteResponse:
    """Ask for a chain."""
    return await handler.lookup_route(lookup(chain=BLOCKS[:8]).SerializeToString(), Patient())


async def one_update() -> AsyncIterator[bytes]:
    """Yield one update that takes many slices."""
    yield update("r1", chain_entry(BLOCKS)).SerializeToString()


@pytest.fixture
def recorder() -> Recorder:
    """Return what counts."""
    return Recorder()


async def test_an_update_whose_stream_goes_away_is_counted_once_applied(
    recorder: Recorder,
) -> None:
    """It is finished all the same, so it is one of those received."""
    plane = new_plane(recorder=recorder, index=IndexSettings(slice_blocks=64))
    handler = made(recorder, plane)
    stream = asyncio.create_task(handler.report_cache_state(one_update(), Patient()))
    for _ in range(3):
        await asyncio.sleep(0)
    stream.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stream
    assert 0 < plane.index.entries < len(BLOCKS)
    assert recorder.updates == 0

    await handler.finish()
    assert plane.index.entries == len(BLOCKS)
    assert (recorder.updates, recorder.entries) == (1, 1)


async def test_an_update_is_counted_when_its_stream_stays(recorder: Recorder) -> None:
    """Once, before the acknowledgement."""
    handler = made(recorder, new_plane(recorder=recorder))
    assert (await handler.report_cache_state(one_update(), Patient())).accepted
    assert (recorder.updates, recorder.entries) == (1, 1)


async def test_a_lookup_whose_answer_cannot_be_written_is_counted_once(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was decided; the caller gets no hint and no error."""

    def broken(_answer: object) -> pb.LookupRouteResponse:
        raise ZeroDivisionError

    monkeypatch.setattr(cache_handler, "route_response", broken)
    handler = made(recorder, new_plane(recorder=recorder))
    await handler.report_cache_state(one_update(), Patient())
    answer = await ask(handler)

    assert answer == pb.LookupRouteResponse(reason_code="NO_HINT")
    assert recorder.lookups == {("m1", ReasonCode.PREFIX_MATCH, True): 1}
    assert recorder.failures == {"LookupRoute": 1}


async def test_a_lookup_that_cannot_be_read_is_counted_once(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands in the way of reading it; nobody knows its model."""

    def broken(_data: bytes, blocks_max: int) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cache_handler, "read_route_request", broken)
    handler = made(recorder, new_plane(recorder=recorder))

    assert await ask(handler) == pb.LookupRouteResponse(reason_code="NO_HINT")
    assert recorder.lookups == {("", ReasonCode.NO_HINT, False): 1}
    assert recorder.failures == {"LookupRoute": 1}


@pytest.mark.parametrize("broken_part", ["answer_sent", "guard"])
async def test_a_lookup_that_cannot_be_decided_is_counted_once(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, broken_part: str
) -> None:
    """As no hint."""

    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError

    plane = new_plane(recorder=recorder)
    handler = made(recorder, plane)
    if broken_part == "guard":
        monkeypatch.setattr(cache_handler.OpenGuard, "allows", broken)
    else:
        monkeypatch.setattr(CachePlane, "answer_sent", broken)

    assert await ask(handler) == pb.LookupRouteResponse(reason_code="NO_HINT")
    assert recorder.lookups == {("m1", ReasonCode.NO_HINT, False): 1}
    assert recorder.failures == {"LookupRoute": 1}
