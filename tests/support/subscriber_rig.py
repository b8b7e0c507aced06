"""A subscriber of a scripted engine, and a sink that can fail halfway."""

import asyncio
from collections.abc import Iterator

import zmq
from engine_sockets import EngineSockets
from followed import Lines
from held_index import HeldIndex

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.events import EventBatch, Operation, RankRouter, SequenceTracker
from inferencecache.settings.producer import DecodeSettings, MapperSettings, SequenceSettings
from inferencecache.transport.subscriber import Subscriber
from inferencecache.transport.subscriber_parts import SubscriberParts
from inferencecache.types import CacheTier


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

    def vouch(self, rank: int, *, is_there: bool) -> None:
        """Note whether the engine is there."""
        self.router.vouch(rank, is_there=is_there)
        self.changed.set()

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
