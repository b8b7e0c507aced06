"""CacheStateUpdate to the index's builder.

Real producers send one entry per block. Where all such entries of a message are alike, they are
cut out of its bytes (:mod:`inferencecache.transport.wire_entries`). Else the loop over entries is
hot: an entry is its hash and a tail that says the rest; hashes all differ, tails hardly do::

    0a 08 <hash> 10 80 04 28 01       prefix_hash, then token_count 512, tier T1
                 ^^^^^^^^^^^^^^
Theory of operation: entries of one length and one head, the first two bytes, are cut into hash and
tail all at once. What a tail means is looked up, and parsed once. A tail may hold anything that the
library itself would write after a hash, for then reading head and tail apart gives what reading
them together does. An entry of any other shape, a chain above all, is parsed by the library.
"""

from collections.abc import Generator, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from struct import Struct
from typing import Final

from google.protobuf.message import DecodeError

from inferencecache.clock import NS_PER_US
from inferencecache.index import StateUpdate
from inferencecache.transport.wire_chain import ChainCutter
from inferencecache.transport.wire_entries import (
    HEAD_BYTES,
    TAIL_BYTES_MAX,
    Kind,
    cut_entries,
    has_hash,
    tail_meaning,
)
from inferencecache.transport.wire_pieces import MessagePieces
from inferencecache.transport.wire_update import WireUpdate, read_update
from inferencecache.types import StatsReport
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

UpdateSteps = Generator[None, None, StateUpdate | None]
"""Yields to give the event loop back; returns the update, None where an entry does not parse."""

ChainOthers = tuple[int, str, bytes, int]
"""Tier, adapter, and the hash and tokens of the whole prefix, as on the wire."""

_CHAIN_BYTES_MIN: Final = 256
"""Shorter chains are read faster by the library."""

_cutter: Final = ChainCutter(pb.PrefixEntry.DESCRIPTOR)

_ENTRY_BYTES_MAX: Final = 65_536
"""Longest entry parsed in one go."""

NAME_BYTES_MAX: Final = 1_048_576
"""Most of a name that is looked at; one as long as that is beyond any limit of names."""

_entry_pieces: Final = MessagePieces(pb.PrefixEntry.DESCRIPTOR, NAME_BYTES_MAX)

SINGLE_ENTRIES: Final = 64
"""Entries read one by one before the loop gets its turn: each takes up to ten times as long as one
that is read with others."""

_RESTS_MAX: Final = 1_024
"""Remainders of chains remembered: tiers and adapters, mostly."""


def update_steps(message: WireUpdate, slice_entries: int) -> UpdateSteps:
    """Read *message* in slices.

    Args:
        message: The update as received.
        slice_entries: Entries read between two yields, >= 1.
    """
    update = new_update()
    take_head(update, message)
    try:
        yield from add_in_slices(update, message.prefixes, slice_entries)
    except DecodeError:
        return None
    return update


def update_at_once(message: WireUpdate) -> StateUpdate | None:
    """Return *message* read whole, None where an entry does not parse.

    With fewer than :data:`SINGLE_ENTRIES` entries that is one step in any case.
    """
    update = new_update()
    take_head(update, message)
    try:
        for _ in _add_slices(update, message.prefixes[:]):
            pass
    except DecodeError:
        return None
    return update


def update_of_entries(data: bytes) -> StateUpdate | None:
    """Return a serialised CacheStateUpdate if it says one block per entry, the usual way.

    Args:
        data: The message.

    Returns:
        The update, None where it has to be read in another way, or does not parse.
    """
    try:
        cut = cut_entries(data)
    except DecodeError:
        return None
    message = None if cut is None else read_update(cut[1])
    if cut is None or message is None or message.prefixes:
        return None
    update = new_update()
    take_head(update, message)
    for kind, hashes, counts in cut[0]:
        update.add_prefixes(hashes, counts, *kind)
    return update


def state_update(data: bytes) -> StateUpdate | None:
    """Return a serialised CacheStateUpdate read whole, None where it does not parse."""
    update = update_of_entries(data)
    if update is not None:
        return update
    message = read_update(data)
    return None if message is None else update_at_once(message)


def new_update() -> StateUpdate:
    """Return an update to which nothing has been added."""
    return StateUpdate(tenant_id="", model_id="", replica_id="", hash_scheme="")


def take_head(update: StateUpdate, message: WireUpdate) -> None:
    """Let *update* say what *message* does, but for the entries.

    Args:
        update: What is made.
        message: The update as received.
    """
    update.tenant_id = message.tenant_id
    update.model_id = message.model_id
    update.replica_id = message.replica_id
    update.hash_scheme = message.hash_scheme
    update.timestamp_ns = message.timestamp_us * NS_PER_US
    update.adapter_id = message.adapter_id
    if message.HasField("stats"):
        update.stats = _stats_report(message.stats)


def add_in_slices(
    update: StateUpdate,
    prefixes: Sequence[bytes],
    slice_entries: int,
    chain_blocks_max: int | None = None,
) -> Iterator[None]:
    """Add serialised entries to an update, in slices.

    Args:
        update: What is made.
        prefixes: The entries.
        slice_entries: How many are added between two yields, >= 1.
        chain_blocks_max: Most blocks that a chain may have, None for any.

    Raises:
        DecodeError: An entry does not parse, or has more blocks.
    """
    for start in range(0, len(prefixes), slice_entries):
        if start:
            yield
        entries = prefixes[start : start + slice_entries]
        yield from _add_slices(update, entries, chain_blocks_max)


def _add_slices(
    update: StateUpdate, prefixes: Sequence[bytes], chain_blocks_max: int | None = None
) -> Iterator[None]:
    """Add some of an update's entries, in slices.

    Raises:
        DecodeError: An entry does not parse.
    """
    batch = _Batch(update)
    for number, (_, alike) in enumerate(groupby(prefixes, len), start=1):
        if number % SINGLE_ENTRIES == 0:
            yield
        entries = list(alike)
        together = yield from _add_together(batch, entries)
        if together:
            continue
        for singles, data in enumerate(entries, start=1):
            if singles % SINGLE_ENTRIES == 0:
                yield
            if len(data) > _ENTRY_BYTES_MAX:
                yield from _add_long_entry(batch, data, chain_blocks_max)
            else:
                _add_single(batch, data)
    batch.close()


class _Batch:
    """Hands plain entries that follow one another and are of one kind to an update together."""

    __slots__ = ("_counts", "_hashes", "_kind", "_update")

    def __init__(self, update: StateUpdate) -> None:
        self._update = update
        self._kind: Kind = (0, "")
        self._hashes: list[bytes] = []
        self._counts: list[int] = []

    def add(self, hashes: Sequence[bytes], counts: Sequence[int], kind: Kind) -> None:
        """Add plain entries of one kind."""
        if kind != self._kind:
            self.close()
            self._kind = kind
        self._hashes += hashes
        self._counts += counts

    def add_chain(
        self, hashes: Sequence[bytes], counts: Sequence[int], others: ChainOthers
    ) -> None:
        """Add a chain; *others* says the rest of its entry."""
        self.close()
        tier, adapter_id, prefix_hash, token_count = others
        self._update.add_chain(
            hashes,
            counts,
            tier=tier,
            adapter_id=adapter_id,
            prefix_hash=prefix_hash,
            token_count=token_count,
        )

    def add_chain_slices(
        self, hashes: Sequence[bytes], counts: Sequence[int], others: ChainOthers
    ) -> Iterator[None]:
        """Add a chain of any length like :meth:`add_chain`, in slices."""
        self.close()
        tier, adapter_id, prefix_hash, token_count = others
        whole = (prefix_hash, token_count)
        return self._update.add_chain_slices(hashes, counts, (tier, adapter_id), whole)

    def close(self) -> None:
        """Hand on what is left."""
        if self._hashes:
            self._update.add_prefixes(self._hashes, self._counts, *self._kind)
            self._hashes, self._counts = [], []


def _add_together(batch: _Batch, entries: list[bytes]) -> Generator[None, None, bool]:
    """Add entries of one length in order, if each is a hash with a tail that can be looked up."""
    size, head = len(entries[0]), entries[0][:HEAD_BYTES]
    if not has_hash(head, size):
        return _add_hashless(batch, entries)
    width = head[1]
    tail_bytes = size - HEAD_BYTES - width
    joined = b"".join(entries)
    if tail_bytes > TAIL_BYTES_MAX or not _begin_alike(joined, size, head):
        return False
    hashes, tails = zip(*_splitter(width, tail_bytes).iter_unpack(joined), strict=True)
    meanings = list(map(tail_meaning, tails))
    if None in meanings:
        return False
    at = 0
    kinds = groupby(filter(None, meanings), itemgetter(0))
    for number, (kind, alike) in enumerate(kinds, start=1):
        if number % SINGLE_ENTRIES == 0:
            yield
        counts = [count for _, count in alike]
        batch.add(hashes[at : at + len(counts)], counts, kind)
        at += len(counts)
    return True


def _add_hashless(batch: _Batch, entries: list[bytes]) -> bool:
    """Add entries of one length in order, if all are equal and a tail without a hash before it."""
    tail, count = entries[0], len(entries)
    if len(tail) > TAIL_BYTES_MAX or entries.count(tail) != count:
        return False
    meaning = tail_meaning(tail)
    if meaning is None:
        return False
    kind, tokens = meaning
    batch.add([b""] * count, [tokens] * count, kind)
    return True


def _begin_alike(joined: bytes, size: int, head: bytes) -> bool:
    """Tell whether each of the entries of *size* bytes begins with *head*."""
    entries = len(joined) // size
    return joined[::size] == head[:1] * entries and joined[1::size] == head[1:] * entries


@lru_cache(maxsize=256)
def _splitter(width: int, tail_bytes: int) -> Struct:
    return Struct(f"{HEAD_BYTES}x{width}s{tail_bytes}s")


def _add_single(batch: _Batch, data: bytes) -> None:
    """Add an entry of any shape."""
    if len(data) >= _CHAIN_BYTES_MIN and _add_packed_chain(batch, data):
        return
    entry = pb.PrefixEntry.FromString(data)
    if entry.block_hashes or entry.block_token_counts:
        batch.add_chain(entry.block_hashes[:], entry.block_token_counts[:], _others(entry))
    else:
        batch.add((entry.prefix_hash,), (entry.token_count,), (entry.tier, entry.adapter_id))


def _add_long_entry(batch: _Batch, data: bytes, blocks_max: int | None) -> Iterator[None]:
    """Add an entry that is too long to be parsed in one go, in slices.

    Raises:
        DecodeError: It does not parse, or has more than *blocks_max* blocks.
    """
    entry = pb.PrefixEntry()
    hashes: list[bytes] = []
    for piece in _entry_pieces.cut(data):
        entry.MergeFromString(piece)
        hashes += entry.block_hashes
        entry.ClearField("block_hashes")
        if blocks_max is not None and len(hashes) > blocks_max:
            raise DecodeError
        yield
    counts = entry.block_token_counts
    if hashes or counts:
        yield from batch.add_chain_slices(hashes, counts, _others(entry))
    else:
        batch.add((entry.prefix_hash,), (entry.token_count,), (entry.tier, entry.adapter_id))


def _add_packed_chain(batch: _Batch, data: bytes) -> bool:
    """Add a long chain without an object per block, if it has the shape the library writes."""
    cut = _cutter.cut(data)
    if cut is None:
        return False
    hashes, counts, rest = cut
    if counts is None:
        entry = pb.PrefixEntry.FromString(rest)
        if entry.block_hashes:
            return False
        batch.add_chain(hashes, entry.block_token_counts[:], _others(entry))
        return True
    read = _rest_of_chain if len(rest) <= TAIL_BYTES_MAX else _rest_of_chain.__wrapped__
    others = read(rest)
    if others is None:
        return False
    batch.add_chain(hashes, counts, others)
    return True


def _others(entry: pb.PrefixEntry) -> ChainOthers:
    return entry.tier, entry.adapter_id, entry.prefix_hash, entry.token_count


@lru_cache(maxsize=_RESTS_MAX)
def _rest_of_chain(rest: bytes) -> ChainOthers | None:
    """Return what an entry without its chain says, None if that holds more of the chain.

    Raises:
        DecodeError: It does not parse.
    """
    entry = pb.PrefixEntry.FromString(rest)
    if entry.block_hashes or entry.block_token_counts:
        return None
    return _others(entry)


def _stats_report(message: pb.ReplicaStats) -> StatsReport:
    return StatsReport(
        cache_memory_bytes=message.cache_memory_bytes,
        hit_rate=message.hit_rate,
        pressure=message.pressure,
        client_version=message.client_version,
        t2_hit_tokens=message.t2_hit_tokens,
        t2_query_tokens=message.t2_query_tokens,
    )
