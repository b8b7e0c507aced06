"""A subscriber whose sink fails halfway: what it holds and what it told stay the same."""

import asyncio
from collections.abc import Iterator

import pytest
import zmq
from engine_events import keys
from engine_payloads import T16, batch, map_remove, map_store
from engine_sockets import EngineSockets, engine_sockets
from followed import LIMIT_S, Lines
from held_index import HeldIndex

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.events import EventBatch, Operation, RankRouter, SequenceTracker
from inferencecache.settings.producer import DecodeSettings, MapperSettings, SequenceSettings
from inferencecache.transport.subscriber import Subscriber
from inferencecache.transport.subscriber_parts import SubscriberParts
from inferencecache.types import CacheTier

T32 = [*T16, *range(16)]
FIRST = batch(map_store([1, 2], T32))
FAILING = batch(map_remove([2]), map_store([3], T16))
LAST = batch(map_remove([1]))


class HalfwaySink:
    """Takes batches in, and loses the changes of some, as a failure between model and index does.

    Args:
        failures: How many of the batches with two events are lost.
    """

    def __init__(self, failures: int) -> None:
        self.router = RankRouter("pod", MapperSettings(), separate_ranks=False)
        self.index = HeldIndex()
        self.failures = failures
        self.applied = 0
        self.changed = asyncio.Event()

    def apply(self, rank: int, batch: EventBatch, *, is_live: bool) -> Iterator[None]:
        """Apply a batch, and raise before its changes have reached the index if it has to."""
        assert is_live in {True, False}
        self.applied += 1
        self.changed.set()
        operations: list[Operation] = []
        yield from self.router.steps(batch, lambda _, changes: operations.extend(changes), 0, rank)
        if len(batch.events) == 2 and self.failures:
            self.failures -= 1
            raise KeyError(batch.events)
        self.index.apply(operations)

    def reset(self, rank: int) -> None:
        """Forget a rank."""
        self._tell(self.router.reset(rank))

    def start_over(self, rank: int) -> None:
        """Forget the replica."""
        self._tell(self.router.start_over(rank))

    def doubt(self, rank: int) -> None:
        """Note a loss."""
        self.router.doubt(rank)

    def _tell(self, changes: list[tuple[str, list[Operation]]]) -> None:
        for _, operations in changes:
            self.index.apply(operations)

    async def taken_in(self, batches: int) -> None:
        """Wait until so many batches were taken in, whether or not they failed."""
        while self.applied < batches:
            self.changed.clear()
            await self.changed.wait()

    def held(self) -> dict[tuple[str, int], CacheTier]:
        """Return what the index holds, which is what the mapper believes."""
        self.router.mapper_of(0).check_invariants()
        assert self.index.tiers() == self.router.mapper_of(0).held_keys()
        return self.index.tiers()


def subscriber(
    engine: EngineSockets,
    clock: ManualClock,
    sink: HalfwaySink,
    *,
    has_replay: bool,
    start_over_interval_ns: int = 60 * NS_PER_S,
) -> Subscriber:
    """Return a subscriber of *engine*."""
    parts = SubscriberParts(
        name="engine",
        rank=0,
        endpoint=engine.endpoint,
        replay_endpoint=engine.replay_endpoint if has_replay else "",
        topic="",
        messages_max=1_000,
        vanished_after_ns=NS_PER_S,
        failure_log_interval_ns=NS_PER_S,
        start_over_interval_ns=start_over_interval_ns,
        decode=DecodeSettings(),
        clock=clock,
        log=Lines(),
        changed=lambda: None,
    )
    tracker = SequenceTracker(SequenceSettings(), has_replay=has_replay)
    return Subscriber(parts, tracker, sink, zmq.Context.instance())


@pytest.mark.parametrize(
    ("has_replay", "failures", "taken_in", "requests"),
    [(False, 1, 3, []), (True, 1, 5, [0, 0]), (True, 2, 5, [0, 0])],
)
async def test_a_failed_batch_leaves_no_stale_claim(
    failures: int, taken_in: int, requests: list[int], *, has_replay: bool
) -> None:
    """All is withdrawn, and asked for again once; a batch that fails always is left behind."""
    clock, sink = ManualClock(), HalfwaySink(failures)
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        made = subscriber(engine, clock, sink, has_replay=has_replay)
        running = asyncio.create_task(made.run())
        await engine.subscribed.wait()
        if has_replay:
            await engine.requested.wait()
        await engine.publish(FIRST)
        await sink.taken_in(1)
        await engine.publish(FAILING)
        await sink.taken_in(2 + 2 * has_replay)
        await engine.publish(LAST)
        await sink.taken_in(taken_in)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert made.counters.failures == failures
    assert made.tracker.is_incomplete == (failures == 2 or not has_replay)
    assert engine.requests == requests
    is_recovered = has_replay and failures == 1
    assert sink.held() == (dict.fromkeys(keys(T16), CacheTier.T1) if is_recovered else {})


@pytest.mark.parametrize(("interval_ns", "requests"), [(0, [0, 0, 0]), (NS_PER_S, [0, 0])])
async def test_how_often_everything_is_asked_for_again_is_a_setting(
    interval_ns: int, requests: list[int]
) -> None:
    """Two failures at one moment lead to two requests, or to one where they are too close."""
    clock, sink = ManualClock(), HalfwaySink(2)
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        made = subscriber(engine, clock, sink, has_replay=True, start_over_interval_ns=interval_ns)
        running = asyncio.create_task(made.run())
        await engine.subscribed.wait()
        await engine.requested.wait()
        await engine.publish(FIRST)
        await sink.taken_in(1)
        await engine.publish(FAILING)
        await sink.taken_in(6 if interval_ns == 0 else 4)
        await engine.publish(LAST)
        await sink.taken_in(7 if interval_ns == 0 else 5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert made.counters.failures == 2
    assert engine.requests == requests
