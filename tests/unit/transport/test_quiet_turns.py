"""What may begin in which turn of a loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.clock import NS_PER_MS, NS_PER_US, ManualClock
from inferencecache.transport.quiet_turns import QuietTurns

WAIT_MS = 20


class Loop:
    """Turns the event loop, with a clock that work moves on.

    Attributes:
        clock: Its time.
        quiet: What is tested.
        begun: Numbers of those that have begun, in order.
    """

    def __init__(self, wait_ms: int = WAIT_MS) -> None:
        self.clock = ManualClock()
        self.quiet = QuietTurns(self.clock, wait_ms * NS_PER_MS)
        self.begun: list[int] = []

    def begin(self, number: int, busy_ns: int = 0) -> "asyncio.Task[None]":
        """Let somebody come, who works for *busy_ns* once it has begun."""

        async def work() -> None:
            await self.quiet.take()
            self.begun.append(number)
            self.clock.advance_ns(busy_ns)

        return asyncio.create_task(work())

    async def turn(self, busy_ns: int = 0) -> None:
        """Pass a turn in which others work for *busy_ns*."""
        self.clock.advance_ns(busy_ns)
        await asyncio.sleep(0)

    async def turns(self, count: int, busy_ns: int = 0) -> None:
        """Pass *count* turns."""
        for _ in range(count):
            await self.turn(busy_ns)


@asynccontextmanager
async def ended(*tasks: "asyncio.Task[None]") -> AsyncIterator[None]:
    """End *tasks* behind a block."""
    yield
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_what_comes_to_a_quiet_loop_begins() -> None:
    """After a turn, without any time on the clock."""
    loop = Loop()
    await loop.begin(1)
    assert loop.begun == [1]


async def test_what_comes_to_a_busy_loop_waits_for_a_quiet_turn() -> None:
    """And begins in the first one."""
    loop = Loop()
    task = loop.begin(1)
    await loop.turns(10, NS_PER_MS)
    assert loop.begun == []
    await loop.turns(2)
    assert loop.begun == [1]
    await task


async def test_a_turn_of_a_call_or_two_is_quiet() -> None:
    """300 microseconds are, one more is not."""
    loop = Loop()
    await loop.turn()
    task = loop.begin(1)
    await loop.turns(10, 301 * NS_PER_US)
    assert loop.begun == []
    await loop.turns(2, 300 * NS_PER_US)
    assert loop.begun == [1]
    await task


async def test_one_begins_per_turn() -> None:
    """The work of the first makes the next turn a busy one, so the second waits for that."""
    loop = Loop()
    tasks = [loop.begin(number, busy_ns=NS_PER_MS) for number in range(3)]
    seen = []
    for _ in range(12):
        await loop.turn()
        seen.append(len(loop.begun))
    assert loop.begun == [0, 1, 2]
    assert all(after - before <= 1 for before, after in pairwise(seen))
    assert seen.count(1) > 1
    assert seen.count(2) > 1
    await asyncio.gather(*tasks)


async def test_nobody_waits_longer_than_that() -> None:
    """However busy the loop is; all who have waited so long begin."""
    loop = Loop()
    tasks = [loop.begin(number) for number in range(50)]
    await loop.turn()
    await loop.turns(WAIT_MS - 1, NS_PER_MS)
    assert loop.begun == []
    await loop.turns(3, NS_PER_MS)
    assert loop.begun == list(range(50))
    await asyncio.gather(*tasks)


async def test_whoever_has_gone_takes_no_turn() -> None:
    """A caller that resets its upload while it waits does not keep the next one waiting."""
    loop = Loop()
    first, second, third = (loop.begin(number, busy_ns=NS_PER_MS) for number in range(3))
    await loop.turns(3, NS_PER_MS)
    async with ended(first, third):
        first.cancel()
        await loop.turn(NS_PER_MS)
        await loop.turns(2)
        assert loop.begun == [1]
        await second


async def test_without_a_wait_everything_begins_at_once() -> None:
    """Not even a turn of the loop passes."""
    steps = Loop(wait_ms=0).quiet.take()
    try:
        steps.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits")


@given(
    turns=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([0, 100, 300, 301, 900, 5_000])), max_size=60
    )
)
def test_any_arrivals_begin_in_order_and_in_time(turns: list[tuple[int, int]]) -> None:
    """Whatever each turn takes, in microseconds, and however many come in it."""

    async def run() -> None:
        loop = Loop()
        came: list[int] = []
        late: list[int] = []
        tasks = []
        for arrivals, busy_us in turns:
            for _ in range(arrivals):
                tasks.append(loop.begin(len(came)))
                came.append(loop.clock.monotonic_ns())
            await loop.turn(busy_us * NS_PER_US)
            now_ns = loop.clock.monotonic_ns()
            waiting = range(len(loop.begun), len(came))
            late += [at for at in waiting if now_ns - came[at] > (WAIT_MS + 15) * NS_PER_MS]
        await loop.turns(len(came) + 3)
        assert loop.begun == list(range(len(came)))
        assert not late, "three turns of 5 ms pass until a call that may begin has its turn"
        await asyncio.gather(*tasks)

    asyncio.run(run())
