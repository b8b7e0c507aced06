"""One engine's events to the lanes of every server."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from inferencecache.clock import Clock
from inferencecache.events import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    Clear,
    EventBatch,
    EventMapper,
    Operation,
    RankRouter,
)
from inferencecache.settings.subscribe import SourceSettings
from inferencecache.transport.client_values import ReplicaRef
from inferencecache.transport.delivery import ServerLink
from inferencecache.transport.delivery_lane import LaneParts
from inferencecache.types import StatsReport


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedParts:
    """What a feed works with.

    Attributes:
        settings: The engine.
        links: The servers.
        clock: Time.
        cleared: Called when a replica was cleared, which also wipes its numbers at the servers.
        withdrawn: Called with each rank that has lost its blocks by the failure of another.
    """

    settings: SourceSettings
    links: tuple[ServerLink, ...]
    clock: Clock
    cleared: Callable[[], None]
    withdrawn: Callable[[int], None]


class EngineFeed:
    """Takes in the batches of all ranks of one engine; a ``BatchSink``.

    Args:
        parts: What it works with.

    Attributes:
        router: The mappers.
        events: Events taken in, by type.
    """

    def __init__(self, parts: FeedParts) -> None:
        engine = parts.settings.engine
        self.router: Final = RankRouter(
            engine.replica_id, parts.settings.mapper, separate_ranks=engine.separate_ranks
        )
        self.events = {BlockStored: 0, BlockRemoved: 0, AllBlocksCleared: 0}
        self._parts = parts
        self._known: dict[str, LaneParts] = {}
        self._away_since_ns: dict[int, int] = {}
        self._forgotten: set[int] = set()

    def open_lanes(self) -> None:
        """Begin with every rank that the settings name."""
        for rank in self._ranks():
            self.router.mapper_of(rank)
            self._change(self.router.replica_of(rank), [])

    def apply(self, rank: int, batch: EventBatch, *, is_live: bool) -> Iterator[None]:
        """Take in a batch, or a slice of one; yield before each further step."""
        if is_live and not batch.is_rest:
            mapper = self.router.mapper_of(rank)
            mapper.note_skew(batch, self._parts.clock.now_ns())
        for event in batch.events[batch.begun_events :]:
            self.events[type(event)] += 1
        now_ns = self._parts.clock.monotonic_ns()
        yield from self.router.steps(batch, self._change, now_ns, rank)

    def reset(self, rank: int) -> None:
        """Forget everything of a rank; its engine has started anew."""
        for replica_id, operations in self.router.reset(rank):
            self._change(replica_id, operations)

    def start_over(self, rank: int) -> None:
        """Forget everything of the replicas that *rank* has to do with, after a failure."""
        lost = self.router.replicas_of(rank)
        for replica_id, operations in self.router.start_over(rank):
            self._change(replica_id, operations)
        for other in self._ranks():
            if other != rank and not lost.isdisjoint(self.router.replicas_of(other)):
                self._parts.withdrawn(other)

    def doubt(self, rank: int) -> None:
        """Note that some of what a rank has announced may be gone."""
        self.router.doubt(rank)

    def vouch(self, rank: int, *, is_there: bool) -> None:
        """Note whether a rank's engine is there, and still the one that announced its blocks."""
        self.router.vouch(rank, is_there=is_there)
        if not is_there:
            self._away_since_ns.setdefault(rank, self._parts.clock.monotonic_ns())
            return
        self._away_since_ns.pop(rank, None)
        if rank in self._forgotten:
            self._forgotten.remove(rank)
            self._tell_again(rank)

    def set_stats(self, stats: StatsReport | None) -> None:
        """Report *stats* for every replica of the engine; None to repeat the last ones nowhere."""
        for parts in self._known.values():
            for link in self._parts.links:
                link.lane(parts).set_stats(stats)
                link.wake()

    def forget_away(self) -> None:
        """Tell nobody any more what engines held that have been away for long, until back."""
        long_ago_ns = (
            self._parts.clock.monotonic_ns() - self._parts.settings.engine.forgotten_after_ns
        )
        for rank, since_ns in list(self._away_since_ns.items()):
            if since_ns <= long_ago_ns:
                self.router.forget(rank)
                self._forgotten.add(rank)
                del self._away_since_ns[rank]

    def expire_slices(self) -> Iterator[None]:
        """Drop the blocks that have waited too long for their parent, a slice at a time."""
        now_ns = self._parts.clock.monotonic_ns()
        for _, mapper in list(self.router.replicas()):
            while mapper.expire(now_ns):
                yield

    def withdraw_slices(self) -> Iterator[None]:
        """Withdraw what ranks had that are gone, a slice at a time."""
        for replica_id, mapper in list(self.router.replicas()):
            yield from mapper.withdraw(partial(self._change, replica_id))

    def reclaim_slices(self, entries_max: int) -> Iterator[None]:
        """Free what clears left behind, *entries_max* blocks at a time."""
        for _, mapper in list(self.router.replicas()):
            while mapper.reclaim(entries_max):
                yield

    def _ranks(self) -> range:
        engine = self._parts.settings.engine
        return range(engine.rank_first, engine.rank_first + engine.ranks_total)

    def _tell_again(self, rank: int) -> None:
        """Tell what a rank holds that is back: servers were not told, or have let it expire."""
        for replica_id in self.router.replicas_of(rank) & self._known.keys():
            for link in self._parts.links:
                link.lane(self._known[replica_id]).repeat()
                link.wake()

    def _change(self, replica_id: str, operations: list[Operation]) -> None:
        parts = self._known.get(replica_id)
        if parts is None:
            held = dict(self.router.replicas()).get(replica_id)
            if held is None:
                return
            parts = self._known[replica_id] = self._lane_parts(replica_id, held)
        now_ns = self._parts.clock.monotonic_ns()
        for link in self._parts.links:
            link.lane(parts).add(operations, now_ns)
            link.wake()
        if any(isinstance(operation, Clear) for operation in operations):
            self._parts.cleared()

    def _lane_parts(self, replica_id: str, held: EventMapper) -> LaneParts:
        engine = self._parts.settings.engine
        return LaneParts(
            replica=ReplicaRef(engine.tenant_id, engine.model_id, replica_id),
            hash_scheme=engine.hash_scheme,
            block_tokens=self._parts.settings.mapper.block_size_tokens,
            held=held,
        )
