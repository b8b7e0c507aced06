"""What waits while requests are at work, and what does not."""

import asyncio
from dataclasses import replace

from served_picker import PROMPT, SMALL, serve_picker

from inferencecache.clock import NS_PER_MS, NS_PER_S, ManualClock

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
    """

    turn_ns = 0

    def monotonic_ns(self) -> int:
        """Move on by a turn."""
        self.advance_ns(self.turn_ns)
        return super().monotonic_ns()


async def test_uploads_and_reports_give_way_to_the_requests_that_are_there() -> None:
    """Pick, PullBody and Abort go on; what begins a request, or only tells, waits for its turn."""
    clock = BusyClock()
    async with serve_picker(PATIENT, clock=clock, ticks=False) as served:
        pushed = await served.push(PROMPT)
        begun, told = await served.push_and_pick(PROMPT), await served.push_and_pick(PROMPT)
        clock.turn_ns = NS_PER_MS
        waiting = [
            asyncio.create_task(served.push(PROMPT)),
            asyncio.create_task(served.first(told.response_id, upstream_status=200)),
            asyncio.create_task(served.final(told.response_id)),
        ]
        picked = await served.pick(pushed.stream_id)
        assert await served.pull(picked.response_id) == PROMPT
        assert await served.abort(begun.response_id)
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
