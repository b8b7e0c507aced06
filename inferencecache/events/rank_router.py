"""Which replica of the index a data-parallel rank is.

Either every rank is a replica of its own, ``pod/3``, because requests can be sent to a rank, or all
ranks share one, because they cannot. In the second case a key is held as long as any rank holds it,
and a rank's clear becomes evictions of what only that rank held.

A batch may name another rank than that of its socket, and is believed. What happens to the socket,
an engine's restart, its absence or a loss, then happens to every rank that was named there.
"""

from collections.abc import Callable, Iterator
from functools import partial

from inferencecache.events.mapper import EventMapper
from inferencecache.events.messages import EventBatch
from inferencecache.events.operations import Operation
from inferencecache.settings.producer import MapperSettings

Emit = Callable[[str, list[Operation]], object]


class RankRouter:
    """The mappers of one engine.

    Args:
        replica_id: Replica of the whole engine, or prefix of its ranks' names.
        settings: Settings of every mapper.
        separate_ranks: Whether each rank is a replica of its own.
    """

    def __init__(self, replica_id: str, settings: MapperSettings, *, separate_ranks: bool) -> None:
        self._replica_id = replica_id
        self._settings = settings
        self._separate_ranks = separate_ranks
        self._mappers: dict[str, EventMapper] = {}
        self._named: dict[int, set[int]] = {}
        self._absent: set[int] = set()
        self._forgotten: set[int] = set()
        self.refused_ranks = 0

    def replica_of(self, rank: int) -> str:
        """Return the replica id that stands for *rank*."""
        return f"{self._replica_id}/{rank}" if self._separate_ranks else self._replica_id

    def mapper_of(self, rank: int) -> EventMapper:
        """Return the mapper that *rank* belongs to, made on first use."""
        replica_id = self.replica_of(rank)
        found = self._mappers.get(replica_id)
        if found is None:
            found = self._mappers[replica_id] = EventMapper(self._settings)
        return found

    def steps(
        self, batch: EventBatch, emit: Emit, now_ns: int, source_rank: int = 0
    ) -> Iterator[None]:
        """Take in a batch; yield before each further step if there is more than one.

        Args:
            batch: The decoded batch; its own rank wins over *source_rank*.
            emit: Told after each step the replica it concerns and that replica's changes.
            now_ns: Monotonic time.
            source_rank: Rank of the socket the batch came from.
        """
        rank = source_rank if batch.rank is None else batch.rank
        replica_id = self.replica_of(rank)
        if replica_id not in self._mappers and len(self._mappers) >= self._settings.ranks_max:
            self.refused_ranks += 1
            return iter(())
        mapper = self.mapper_of(rank)
        steps = mapper.steps(batch, partial(emit, replica_id), now_ns, source_rank)
        if rank == source_rank or rank in self._named.get(source_rank, ()):
            return steps
        self._named.setdefault(source_rank, set()).add(rank)
        return self._first_steps(rank, source_rank, steps)

    def _first_steps(self, rank: int, source_rank: int, steps: Iterator[None]) -> Iterator[None]:
        """Take in the first batch that names a rank, whose engine is that behind the socket.

        One that is not followed then, being one too many, is named for the first time again.
        """
        yield from steps
        if self._follows(rank):
            self.mapper_of(rank).vouch(rank, is_there=source_rank not in self._absent)
            if source_rank in self._forgotten:
                self.mapper_of(rank).forget(rank)
        else:
            self._named.get(source_rank, set()).discard(rank)

    def reset(self, source_rank: int) -> list[tuple[str, list[Operation]]]:
        """Forget the blocks of a socket's ranks, as after a restart of its engine."""
        ranks = self._ranks_of(source_rank)
        self._named.pop(source_rank, None)
        return [(self.replica_of(rank), self.mapper_of(rank).reset(rank)) for rank in ranks]

    def start_over(self, source_rank: int) -> list[tuple[str, list[Operation]]]:
        """Forget every block of the replicas that a socket's ranks belong to, after a failure."""
        ranks = {self.replica_of(rank): rank for rank in self._ranks_of(source_rank)}
        self._named.pop(source_rank, None)
        return [(name, self.mapper_of(rank).start_over()) for name, rank in ranks.items()]

    def doubt(self, source_rank: int) -> None:
        """Note that removals of a socket's ranks may have been lost."""
        for rank in self._ranks_of(source_rank):
            self.mapper_of(rank).doubt(rank)

    def vouch(self, source_rank: int, *, is_there: bool) -> None:
        """Note whether the engine behind a socket is there, and still the same."""
        if is_there:
            self._absent.discard(source_rank)
            self._forgotten.discard(source_rank)
        else:
            self._absent.add(source_rank)
        for rank in self._ranks_of(source_rank):
            self.mapper_of(rank).vouch(rank, is_there=is_there)

    def forget(self, source_rank: int) -> None:
        """Tell nobody any more what a socket's ranks hold, until their engine is back."""
        self._forgotten.add(source_rank)
        for rank in self._ranks_of(source_rank):
            self.mapper_of(rank).forget(rank)

    def replicas_of(self, source_rank: int) -> set[str]:
        """Return the replicas that a socket's ranks belong to."""
        return set(map(self.replica_of, self._ranks_of(source_rank)))

    def _ranks_of(self, source_rank: int) -> list[int]:
        """Return the rank of a socket and those that were named there and are followed."""
        named = self._named.get(source_rank, ())
        return [source_rank, *(rank for rank in sorted(named) if self._follows(rank))]

    def _follows(self, rank: int) -> bool:
        mapper = self._mappers.get(self.replica_of(rank))
        return mapper is not None and mapper.follows(rank)

    def replicas(self) -> Iterator[tuple[str, EventMapper]]:
        """Yield every replica and its mapper, in order of replica id."""
        yield from sorted(self._mappers.items())
