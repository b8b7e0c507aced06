"""What waits while requests are at work, and what does not."""

import asyncio
from dataclasses import replace

import pytest
from served_picker import PROMPT, SMALL, messages, serve_picker, until

from inferencecache.clock import NS_PER_MS, NS_PER_S, ManualClock
from inferencecache.kinference.v1 import picker_pb2 as pb

HOUR_NS = 3_600 * NS_PER_S
PATIENT = replace(
    SMALL,
    begin_wait_ns=HOUR_NS,
    body_ttl_ns=HOUR_NS,
    unpulled_ttl_ns=HOUR_NS,
    decision_ttl_ns=HOUR_NS,
    ended_ttl_ns=HOUR_NS,
)


class BusyClock(ManualClock):
    """A clock of a loop whose every turn takes as long as it is told.

    Attributes:
        turn_ns: How long; whoever looks twice has passed a turn.
        looks: How often anybody looked; goes on while somebody waits.
    """

    turn_ns = 0
    looks = 0

    def monotonic_ns(self) -> int:
        """Move on by a turn."""
        self.looks += 1
        self.advance_ns(self.turn_ns)
        return super().monotonic_ns()

    async def somebody_waits(self) -> None:
        """Return when a call has come that looks turn by turn."""
        looks = self.looks
        await until(lambda: self.looks > looks + 100)


async def test_uploads_and_reports_give_way_to_the_requests_that_are_there() -> None:
    """Pick, PullBody and Abort go on; uploads, and answers to reports that have counted, wait."""
    clock = BusyClock()
    async with serve_picker(PATIENT, clock=clock, ticks=False) as served:
        pushed = await served.push(PROMPT)
        begun, told = await served.push_and_pick(PROMPT), await served.push_and_pick(PROMPT)
        assert await served.pull(told.response_id) == PROMPT
        clock.turn_ns = NS_PER_MS
        waiting = [
            asyncio.create_task(served.push(PROMPT)),
            asyncio.create_task(served.first(told.response_id, upstream_status=200)),
            asyncio.create_task(served.final(told.response_id)),
        ]
        picked = await served.pick(pushed.stream_id)
        assert await served.pull(picked.response_id) == PROMPT
        assert await served.abort(begun.response_id)
        assert not await served.abort(told.response_id), "its final report has counted"
        assert not any(task.done() for task in waiting)

        clock.turn_ns = 0
        upload, first, final = waiting
        assert (await upload).total_bytes == len(PROMPT)
        assert (await first, await final) == (True, True)


async def test_an_upload_does_not_wait_for_ever() -> None:
    """After its longest wait it goes beside the others."""
    clock = BusyClock()
    settings = replace(PATIENT, begin_wait_ns=20 * NS_PER_MS)
    async with serve_picker(settings, clock=clock, ticks=False) as served:
        clock.turn_ns = NS_PER_MS
        assert (await served.push(PROMPT)).total_bytes == len(PROMPT)


async def test_without_a_wait_nothing_gives_way() -> None:
    """Zero has every call begin at once."""
    clock = BusyClock()
    async with serve_picker(replace(PATIENT, begin_wait_ns=0), clock=clock, ticks=False) as served:
        clock.turn_ns = NS_PER_S
        picked = await served.push_and_pick(PROMPT)
        assert await served.first(picked.response_id, upstream_status=200)


@pytest.mark.parametrize("method", ["ReportFirstToken", "ReportFinalToken"])
async def test_a_report_that_has_come_counts_if_its_caller_goes_while_it_waits(method: str) -> None:
    """Else its request would be in flight for as long as decisions live."""
    clock = BusyClock()
    async with serve_picker(PATIENT, clock=clock, ticks=False) as served:
        response_id = (await served.push_and_pick(PROMPT)).response_id
        tell, request = getattr(served.stub, method), getattr(pb, f"{method}Request")
        clock.turn_ns = NS_PER_MS
        call = tell(request(response_id=response_id))
        await clock.somebody_waits()
        call.cancel()
        assert not await served.abort(response_id + 1), "comes after the reset, and does not wait"

        clock.turn_ns = 0
        again = await tell(request(response_id=response_id))
        assert not again.acknowledged, "only the first of a kind counts"


async def test_an_upload_that_is_reset_while_it_waits_is_one_and_leaves_nothing() -> None:
    """Nothing was charged yet; it is told like any other."""
    clock = BusyClock()
    async with serve_picker(PATIENT, clock=clock, ticks=False) as served:
        clock.turn_ns = NS_PER_MS
        push = served.stub.PushBody(messages([PROMPT]))
        await clock.somebody_waits()
        push.cancel()
        await until(lambda: bool(served.recorder.lines))
        (told,) = served.recorder.lines
        assert told == ("push", {"client_request_id": "", "result": "reset", "bytes": 0})
        assert served.buffered_bytes == 0
