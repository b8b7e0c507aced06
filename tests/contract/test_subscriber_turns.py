"""How long a subscriber keeps the loop, by a clock that only its work moves on."""

import asyncio
from collections.abc import Iterator

import pytest
import zmq
from engine_payloads import batch, map_store
from engine_sockets import EngineSockets, engine_sockets
from followed import LIMIT_S, Lines

from inferencecache.clock import NS_PER_MS, NS_PER_S, NS_PER_US, ManualClock
from inferencecache.events import BlockStored, EventBatch, SequenceTracker
from inferencecache.settings.producer import DecodeSettings, SequenceSettings
from inferencecache.transport.subscriber import Subscriber
from inferencecache.transport.subscriber_parts import SubscriberParts

AWAY_MAX_NS = 50 * NS_PER_MS
BLOCK_NS = 3 * NS_PER_US
"""What a block costs on a slow machine, from bytes to an outbox; see ``docs/benchmarks.md``."""


class SlowSink:
    """Takes its time for every block, and notes how often others had the loop meanwhile."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.blocks = 0
        self.calls = 0
        self.changed = asyncio.Event()

    def apply(self, rank: int, batch: EventBatch, *, is_live: bool) -> Iterator[None]:
        """Count the blocks and let the time pass that they cost."""
        assert (rank, is_live) == (0, True)
        stores = [event for event in batch.events if isinstance(event, BlockStored)]
        blocks = sum(len(event.block_hashes) for event in stores)
        self._clock.advance_ns(blocks * BLOCK_NS)
        self.blocks += blocks
        self.calls += 1
        self.changed.set()
        return iter(())

    def reset(self, rank: int) -> None:
        """Never called here."""
        raise AssertionError(rank)

    doubt = start_over = reset

    def vouch(self, rank: int, *, is_there: bool) -> None:
        """Do nothing: whether the engine is there plays no part here."""


class FailingSink(SlowSink):
    """Counts a batch and then fails at it, in words that quote it."""

    def apply(self, rank: int, batch: EventBatch, *, is_live: bool) -> Iterator[None]:
        """Raise KeyError with a hash of the batch."""
        super().apply(rank, batch, is_live=is_live)
        (event,) = batch.events
        assert isinstance(event, BlockStored)
        raise KeyError(event.block_hashes[0])

    def start_over(self, rank: int) -> None:
        """Have nothing to withdraw."""
        assert rank == 0


def subscriber(engine: EngineSockets, clock: ManualClock, sink: SlowSink, log: Lines) -> Subscriber:
    """Return a subscriber of *engine* without a replay."""
    parts = SubscriberParts(
        name="engine",
        rank=0,
        endpoint=engine.endpoint,
        replay_endpoint="",
        topic="",
        messages_max=1_000,
        vanished_after_ns=NS_PER_S,
        failure_log_interval_ns=NS_PER_S,
        start_over_interval_ns=60 * NS_PER_S,
        decode=DecodeSettings(),
        clock=clock,
        log=log,
        changed=lambda: None,
        cpu_ns=clock.monotonic_ns,
    )
    return Subscriber(
        parts, SequenceTracker(SequenceSettings(), has_replay=False), sink, zmq.Context.instance()
    )


@pytest.mark.parametrize(
    ("batches", "events", "blocks"), [(1, 1, 60_000), (1, 60, 1_000), (3_000, 1, 10)]
)
async def test_no_amount_of_work_keeps_the_loop_for_long(
    batches: int, events: int, blocks: int
) -> None:
    """One huge event, many large ones and many small batches all leave room for others."""
    clock = ManualClock()
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        sink = SlowSink(clock)
        log = Lines()
        made = subscriber(engine, clock, sink, log)
        running = asyncio.create_task(made.run())
        await engine.subscribed.wait()
        for number in range(batches):
            first = number * events * blocks
            await engine.publish(
                batch(
                    *(
                        map_store(list(range(start, start + blocks)), [7] * blocks, size=1)
                        for start in range(first, first + events * blocks, blocks)
                    )
                )
            )
        turns = 0
        while sink.blocks < batches * events * blocks:
            sink.changed.clear()
            await sink.changed.wait()
            turns += 1
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert made.counters.failures == 0
    assert log.events == ["engine_connected", "engine_synced"]
    assert 0 < made.counters.longest_away_ns <= AWAY_MAX_NS
    assert made.counters.longest_away_cpu_ns == made.counters.longest_away_ns
    assert turns >= batches * events * blocks * BLOCK_NS / AWAY_MAX_NS


async def test_batches_that_fail_are_one_counted_line_for_each_interval() -> None:
    """The line says what was raised and where, and nothing of what the batch held."""
    clock, log = ManualClock(), Lines()
    async with engine_sockets() as engine, asyncio.timeout(LIMIT_S):
        sink = FailingSink(clock)
        made = subscriber(engine, clock, sink, log)
        running = asyncio.create_task(made.run())
        await engine.subscribed.wait()
        for number in range(4):
            if number == 3:
                clock.advance_ns(NS_PER_S)
            await engine.publish(batch(map_store([8_123_456_789], [7] * 16)))
            while sink.calls == number:
                sink.changed.clear()
                await sink.changed.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert made.counters.failures == 4
    lines = log.fields_of("batch_failed")
    assert [str(line.pop("where")).split(":")[0] for line in lines] == [__name__, __name__]
    assert lines == [
        {"source": "engine", "error": "KeyError", "unlogged": 0},
        {"source": "engine", "error": "KeyError", "unlogged": 2},
    ]
