"""Producers as tasks: side by side, each within its limit, none too late."""

import asyncio
from collections.abc import Sequence

import pytest
from pipeline_rig import (
    Making,
    Noted,
    director,
    key,
    pipeline,
    question,
    raising,
    task_runner,
    workers,
)

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.picker.pipeline import EndpointView, FailureKind, PipelineRun, Produced, Request
from inferencecache.transport.picker_producers import ProducerTasks

A, B, C = key("a"), key("b"), key("c")


class Waiting(Making):
    """A producer that waits for the test."""

    def __init__(self, *makes: object, limit_ms: int = 0, **more: object) -> None:
        super().__init__(*makes, **more)
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.was_cancelled = False
        self._limit_ms = limit_ms

    def produce_timeout_ns(self) -> int:
        """Return its limit."""
        return self._limit_ms * NS_PER_MS

    async def produce(self, request: Request, endpoints: Sequence[EndpointView]) -> Produced:
        """Wait, then say what it says."""
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return await super().produce(request, endpoints)


class Stubborn(Waiting):
    """A producer that does not let itself be cancelled."""

    async def produce(self, request: Request, endpoints: Sequence[EndpointView]) -> Produced:
        """Wait, whatever happens."""
        while not self.go.is_set():
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.was_cancelled = True
        return await Making.produce(self, request, endpoints)


async def ending(*_: object) -> Produced:
    """Call an end to everything."""
    raise SystemExit(3)


def run_of(runner: ProducerTasks, noted: Noted | None = None, **plugins: object) -> PipelineRun:
    """Return a run whose producers are tasks of *runner*."""
    return director(pipeline(**plugins), noted, runner).open(question())


async def test_independent_producers_run_side_by_side() -> None:
    """Both have begun before either is done."""
    one, two = Waiting(A, limit_ms=60_000), Waiting(B, limit_ms=60_000)
    run = run_of(task_runner(), one=one, two=two)
    produced = asyncio.create_task(run.produce(workers("e")))
    await one.begun.wait()
    await two.begun.wait()
    one.go.set()
    two.go.set()
    await produced
    assert run.request.attributes.get(A) == run.request.attributes.get(B) == 1
    assert run.degraded == []


async def test_a_dependant_sees_what_it_needs() -> None:
    """It begins when that is there, though another producer is still at work."""
    slow = Waiting(C, limit_ms=60_000)
    dependant = Making(B, needs=(A,))
    seen: list[object] = []

    async def produce(request: Request, endpoints: Sequence[EndpointView]) -> Produced:
        seen.append(request.attributes.get(A))
        slow.go.set()
        return await Making.produce(dependant, request, endpoints)

    dependant.produce = produce
    await run_of(task_runner(), slow=slow, maker=Making(A), dependant=dependant).produce([])
    assert seen == [1]


async def test_a_producer_does_not_end_the_program() -> None:
    """The event loop would, and with it the server."""
    noted = Noted()
    gone = Making(A)
    gone.produce = ending
    run = run_of(task_runner(), noted, gone=gone, other=Making(C))
    await run.produce(workers("e"))
    assert run.degraded == ["gone:raised"]
    assert list(run.request.attributes) == ["c"]
    assert [kind for _, _, kind in noted.failures] == [FailureKind.RAISED]


async def test_a_late_producer_fails_alone_and_says_nothing() -> None:
    """Its dependant is left out; whoever does not need it is not."""
    noted, runner = Noted(), task_runner()
    late = Waiting(A, limit_ms=5)
    dependant, other = Making(B, needs=(A,)), Making(C, uses=(A,))
    run = run_of(runner, noted, late=late, dependant=dependant, other=other)
    await run.produce(workers("e"))
    assert run.degraded == ["late:timeout"]
    assert (dependant.calls, other.calls) == (0, 1)
    assert list(run.request.attributes) == ["c"]
    assert [kind for _, _, kind in noted.failures] == [FailureKind.TIMEOUT]
    await asyncio.wait_for(until_idle(runner), 10)
    assert late.was_cancelled
    assert run.request.attributes.get(A) is None


async def test_a_straggler_holds_nobody_up_and_commits_nothing() -> None:
    """It counts as running until it is done, and then what it says is thrown away."""
    runner = task_runner(running_max=1)
    stubborn = Stubborn(A, limit_ms=5)
    run = run_of(runner, stubborn=stubborn)
    await run.produce(workers("e"))
    assert run.degraded == ["stubborn:timeout"]
    assert len(runner) == 1

    next_run = run_of(runner, maker=Making(A))
    await next_run.produce(workers("e"))
    assert next_run.degraded == ["maker:busy"]

    stubborn.go.set()
    await asyncio.wait_for(until_idle(runner), 10)
    assert stubborn.calls == 1
    assert run.request.attributes.get(A) is None


async def until_idle(runner: ProducerTasks) -> None:
    """Wait until no producer runs."""
    while len(runner):
        await asyncio.wait(set(runner._tasks))


@pytest.mark.parametrize("hook", ["raises", "no_coroutine", "cancels_itself"])
async def test_whatever_goes_wrong_is_that_producers_alone(hook: str) -> None:
    """Raising before it waits, being no coroutine, being cancelled."""
    bad, good = Making(A), Making(B)

    def produce(*_: object) -> object:
        if hook == "raises":
            raise RuntimeError("told to")
        if hook == "cancels_itself":
            raise asyncio.CancelledError
        return Produced()

    bad.produce = produce
    noted = Noted()
    run = run_of(task_runner(), noted, bad=bad, good=good)
    await run.produce(workers("e"))
    assert run.degraded == ["bad:raised"]
    assert noted.produced_by == ["good"]


async def test_a_pick_that_is_cancelled_takes_its_producers_along() -> None:
    """Nobody works for a caller that is gone, and nothing is said any more."""
    runner, waiting = task_runner(), Waiting(A, limit_ms=60_000)
    run = run_of(runner, waiting=waiting)
    pick = asyncio.create_task(run.produce(workers("e")))
    await waiting.begun.wait()
    pick.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pick
    await asyncio.wait_for(until_idle(runner), 10)
    assert waiting.was_cancelled
    assert len(run.request.attributes) == 0


async def test_a_straggler_that_raises_at_last_is_no_loose_end() -> None:
    """Warnings are errors here: nobody retrieves its exception but the runner."""
    runner, stubborn = task_runner(), Stubborn(A, limit_ms=5)
    stubborn.__class__ = type("Breaking", (Stubborn,), {"produce": _break})
    await run_of(runner, stubborn=stubborn).produce([])
    stubborn.go.set()
    await asyncio.wait_for(until_idle(runner), 10)
    assert len(runner) == 0


async def _break(self: Stubborn, *_: object) -> Produced:
    """Ignore being cancelled, then raise."""
    while not self.go.is_set():
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
    raise RuntimeError("at last")


class Immediate(Making):
    """A producer that never waits."""

    def produce_now(self, _request: Request, _endpoints: Sequence[EndpointView]) -> Produced:
        """Say what it says."""
        self.calls += 1
        produced = Produced()
        for made in self.produces:
            produced.put(made, 1)
        return produced


async def test_a_producer_that_never_waits_is_called_in_place() -> None:
    """Even where no task may be started; whoever needs its key comes behind it."""
    noted, quick, dependant = Noted(), Immediate(A), Making(B, needs=(A,))
    run = run_of(task_runner(running_max=1), noted, dependant=dependant, quick=quick)
    await run.produce([])
    assert (quick.calls, dependant.calls) == (1, 1)
    assert noted.produced_by == ["quick", "dependant"]


async def test_one_that_raises_in_place_takes_only_its_dependants_along() -> None:
    """As one that runs as a task."""
    bad, dependant, other = Immediate(A), Making(B, needs=(A,)), Immediate(C)
    bad.produce_now = raising("produce_now").produce_now
    run = run_of(task_runner(), bad=bad, dependant=dependant, other=other)
    await run.produce([])
    assert run.degraded == ["bad:raised"]
    assert list(run.request.attributes) == ["c"]
    assert dependant.calls == 0


async def test_limits_are_each_producers_own() -> None:
    """A short one does not shorten its neighbour's."""
    short, long = Waiting(A, limit_ms=5), Waiting(B, limit_ms=60_000)
    run = run_of(task_runner(), short=short, long=long)
    pick = asyncio.create_task(run.produce([]))
    await long.begun.wait()
    while not short.was_cancelled:
        await asyncio.wait({pick}, timeout=0.005)
    assert not pick.done()
    long.go.set()
    await pick
    assert run.degraded == ["short:timeout"]
    assert run.request.attributes.get(B) == 1
    assert pipeline(long=long).producers[0].timeout_ns == 60 * NS_PER_S


async def test_producers_that_fail_make_no_noise_in_the_loop() -> None:
    """What one raised reaches the observer, with its type."""
    noted, broken = Noted(), Making(A)
    broken.produce = raising("produce", KeyError("k")).produce
    await run_of(task_runner(), noted, broken=broken).produce([])
    assert [type(error) for error in noted.errors] == [KeyError]
