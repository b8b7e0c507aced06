"""Changes that one server has not been told yet.

Theory of operation
-------------------
Only the last change of a key matters, so changes gather here and what a later one overtakes is
never sent. A store that was overtaken leaves a hole in its run::

    store  K1 K2 K3 K4        evict K3, then take:    evict: (nothing, if K3 was new)
                                                      chains: K1 K2 | K4

One :class:`Delivery` is taken at a time and repeated until it succeeds; meanwhile later changes
gather. Within a delivery the order is: clear, evictions, chains. That keeps the order of every key,
because a key is in one of the last two at most, and stores that repair an eviction in the base
partition (which the index takes for every adapter's) come after it. A delivery may be taken in
part, so that a million pending keys do not hold up a loop; it has no chains before the last
eviction is out.

Rules of this file
------------------
* ``_latest`` names, per adapter and key, the run that stores it; ``_evicted`` the keys to evict.
  A key is never in both.
* An eviction is left out only when the key's store is still here, was the first ever, and no
  eviction was pending before it: then the server never knew the key.
"""

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec

from inferencecache.events.operations import Evict, Operation, StoreRun
from inferencecache.settings.producer import OutboxSettings
from inferencecache.types import CacheTier

_KEY_BYTES: Final = 8
_UNBOUNDED: Final = sys.maxsize
_COMPACT_KEYS_MIN: Final = 65_536
_UPDATE_CHAINS_MAX: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainEntry:
    """Keys that follow one another, as one entry of an update.

    Attributes:
        adapter_id: Partition.
        tier: Where they are held.
        block_hashes: Wire keys of 8 bytes.
        first_token_count: Tokens from the prompt's start to the end of the first block, so that
            the counts the index adds up are those of the whole prompt.
        block_tokens: Tokens of every further block.
    """

    adapter_id: str
    tier: CacheTier
    block_hashes: list[bytes]
    first_token_count: int
    block_tokens: int

    def block_token_counts(self) -> list[int]:
        """Return the counts that go with the hashes."""
        return [self.first_token_count, *[self.block_tokens] * (len(self.block_hashes) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """One key that is gone from one partition."""

    adapter_id: str
    block_hash: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What to send next, in this order: clear, evictions, chains.

    Attributes:
        has_clear: Everything of the replica goes first.
        evictions: Keys to evict; they may be sent in any order among themselves.
        chains: What to store after that.
    """

    has_clear: bool
    evictions: list[Eviction]
    chains: list[ChainEntry]

    def updates(self, blocks_max: int) -> Iterator[list[ChainEntry]]:
        """Yield the chains in groups of at most *blocks_max* blocks, one update each.

        Short chains are few to a group, too, for each of them costs as much as many blocks.
        """
        group: list[ChainEntry] = []
        room = blocks_max
        for entry in self.chains:
            for part in _split(entry, blocks_max):
                if len(part.block_hashes) > room or len(group) >= _UPDATE_CHAINS_MAX:
                    yield group
                    group, room = [], blocks_max
                group.append(part)
                room -= len(part.block_hashes)
        if group:
            yield group


class Outbox:
    """Pending changes of one replica for one server.

    Args:
        settings: Bounds.
        block_tokens: Block size of the index.

    Attributes:
        needs_live_set: Changes were lost because too many were pending: call :meth:`restart` and
            offer the whole live set. Until then nothing gathers.
        coalesced_keys: Changes that a later one made unnecessary.
        overflows: Times that pending changes were dropped.
    """

    def __init__(self, settings: OutboxSettings, block_tokens: int) -> None:
        self.needs_live_set = False
        self.coalesced_keys = 0
        self.overflows = 0
        self._keys_max = settings.pending_keys_max
        self._block_tokens = block_tokens
        self._runs: deque[StoreRun] = deque()
        self._run_keys = 0
        self._latest: dict[str, dict[int, StoreRun]] = {}
        self._evicted: dict[str, dict[int, None]] = {}
        self._has_clear = False

    @property
    def pending_keys(self) -> int:
        """Keys with an unsent change."""
        stored = sum(map(len, self._latest.values()))
        return stored + sum(map(len, self._evicted.values()))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self._has_clear and self.pending_keys == 0

    def add(self, operations: Iterable[Operation]) -> None:
        """Take in changes, in order."""
        if self.needs_live_set:
            return
        for operation in operations:
            if isinstance(operation, StoreRun):
                self._store(operation)
            elif isinstance(operation, Evict):
                self._evict(operation)
            else:
                self._clear()
        pending = self.pending_keys
        if pending > self._keys_max:
            self.overflows += 1
            self.needs_live_set = True
            self._forget()
        elif self._run_keys > 2 * pending + _COMPACT_KEYS_MIN:
            self._compact()

    def restart(self) -> None:
        """Drop what is pending and begin with a clear; the caller adds the live set next."""
        self._clear()
        self.needs_live_set = False

    def take(self, keys_max: int = _UNBOUNDED, chains_max: int = _UNBOUNDED) -> Delivery | None:
        """Remove and return what is pending; None if there is nothing.

        Args:
            keys_max: Most keys taken, >= 1; the rest stays.
            chains_max: Most chains that they may be part of, >= 1.

        Complexity:
            Linear in what is taken, about a microsecond a key and ten a chain.
        """
        if self.is_empty:
            return None
        evictions = self._take_evictions(keys_max)
        room = keys_max - len(evictions)
        chains = [self._entry(piece) for piece in self._pieces(room, chains_max)]
        delivery = Delivery(has_clear=self._has_clear, evictions=evictions, chains=chains)
        if self.pending_keys == 0:
            self._forget()
        self._has_clear = False
        return delivery

    def _take_evictions(self, keys_max: int) -> list[Eviction]:
        """Take out the oldest keys to evict."""
        taken: list[Eviction] = []
        for adapter_id, keys in self._evicted.items():
            for key in list(islice(keys, keys_max - len(taken))):
                del keys[key]
                taken.append(Eviction(adapter_id=adapter_id, block_hash=wire_key(key)))
        return taken

    def _store(self, run: StoreRun) -> None:
        evicted = self._evicted.get(run.adapter_id)
        overtaken = [key for key in run.keys if key in evicted] if evicted else []
        if evicted and overtaken:
            for key in overtaken:
                del evicted[key]
            self.coalesced_keys += len(overtaken)
            # The server may still hold these keys, so a removal has to be sent after all.
            run = msgspec.structs.replace(run, is_fresh=False)
        self._append(run)

    def _append(self, run: StoreRun) -> None:
        self._runs.append(run)
        self._run_keys += len(run.keys)
        self._latest.setdefault(run.adapter_id, {}).update(dict.fromkeys(run.keys, run))

    def _evict(self, operation: Evict) -> None:
        latest = self._latest.get(operation.adapter_id, {})
        evicted = self._evicted.setdefault(operation.adapter_id, {})
        for key in operation.keys:
            run = latest.pop(key, None)
            self.coalesced_keys += run is not None
            if run is None or not run.is_fresh:
                evicted[key] = None

    def _clear(self) -> None:
        self._forget()
        self._has_clear = True

    def _forget(self) -> None:
        self._runs, self._run_keys = deque(), 0
        self._latest, self._evicted = {}, {}

    def _compact(self) -> None:
        """Drop the overtaken parts of runs, which would pile up while a server is away."""
        pieces = list(self._pieces())
        self._runs, self._run_keys, self._latest = deque(), 0, {}
        for piece in pieces:
            self._append(piece)

    def _pieces(
        self, keys_max: int = _UNBOUNDED, pieces_max: int = _UNBOUNDED
    ) -> Iterator[StoreRun]:
        """Take out and yield what is left of the runs, joined where one continues the other."""
        piece: StoreRun | None = None
        for run, position in islice(self._due_stores(), keys_max):
            if piece is not None and _continues(piece, run, position):
                piece.keys.append(run.keys[position])
                continue
            if piece is not None:
                yield piece
                pieces_max -= 1
            if not pieces_max:
                self._latest[run.adapter_id][run.keys[position]] = run  # for the next time
                return
            piece = self._piece_at(run, position)
        if piece is not None:
            yield piece

    def _due_stores(self) -> Iterator[tuple[StoreRun, int]]:
        """Take out and yield each key to store, as its run and its position there."""
        while self._runs:
            run = self._runs[0]
            latest = self._latest.get(run.adapter_id, {})
            for position, key in enumerate(run.keys):
                if latest.get(key) is run:
                    del latest[key]
                    yield run, position
            self._runs.popleft()
            self._run_keys -= len(run.keys)

    def _piece_at(self, run: StoreRun, position: int) -> StoreRun:
        """Return a run of one key, ready to grow."""
        return StoreRun(
            adapter_id=run.adapter_id,
            tier=run.tier,
            keys=[run.keys[position]],
            parent_key=run.keys[position - 1] if position else run.parent_key,
            first_token_count=run.first_token_count + position * self._block_tokens,
            is_fresh=run.is_fresh,
        )

    def _entry(self, piece: StoreRun) -> ChainEntry:
        return ChainEntry(
            adapter_id=piece.adapter_id,
            tier=piece.tier,
            block_hashes=list(map(wire_key, piece.keys)),
            first_token_count=piece.first_token_count,
            block_tokens=self._block_tokens,
        )


def wire_key(key: int) -> bytes:
    """Return a prefix hash as it travels: 8 bytes, big-endian."""
    return key.to_bytes(_KEY_BYTES, "big")


def _continues(piece: StoreRun, run: StoreRun, position: int) -> bool:
    """Tell whether the key of *run* at *position* follows the last one of *piece*."""
    before = run.keys[position - 1] if position else run.parent_key
    return (
        before == piece.keys[-1]
        and run.tier == piece.tier
        and run.adapter_id == piece.adapter_id
        and run.is_fresh == piece.is_fresh
    )


def _split(entry: ChainEntry, blocks_max: int) -> Iterator[ChainEntry]:
    hashes = entry.block_hashes
    for start in range(0, len(hashes), blocks_max):
        yield ChainEntry(
            adapter_id=entry.adapter_id,
            tier=entry.tier,
            block_hashes=hashes[start : start + blocks_max],
            first_token_count=entry.first_token_count + start * entry.block_tokens,
            block_tokens=entry.block_tokens,
        )
