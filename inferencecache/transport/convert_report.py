"""CacheStateUpdate to the index's builder.

Real producers send one entry per block, so the loop over entries is hot. Consecutive plain entries
of one tier and adapter are handed on together; each entry costs its attribute reads and little
else.
"""

from collections.abc import Generator, Iterable

from inferencecache.clock import NS_PER_US
from inferencecache.index import StateUpdate
from inferencecache.types import StatsReport
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

UpdateSteps = Generator[None, None, StateUpdate]
"""Yields to give the event loop back; returns the update."""


def update_steps(message: pb.CacheStateUpdate, slice_entries: int) -> UpdateSteps:
    """Read *message* in slices.

    Args:
        message: The update as received.
        slice_entries: Entries read between two yields, >= 1.
    """
    update = StateUpdate(
        tenant_id=message.tenant_id,
        model_id=message.model_id,
        replica_id=message.replica_id,
        hash_scheme=message.hash_scheme,
        timestamp_ns=message.timestamp_us * NS_PER_US,
        adapter_id=message.adapter_id,
    )
    if message.HasField("stats"):
        update.stats = _stats_report(message.stats)
    prefixes = message.prefixes
    total = len(prefixes)
    if total <= slice_entries:
        _add_entries(update, prefixes)
        return update
    for start in range(0, total, slice_entries):
        if start:
            yield
        _add_entries(update, prefixes[start : start + slice_entries])
    return update


def state_update(message: pb.CacheStateUpdate) -> StateUpdate:
    """Return *message* read whole."""
    steps = update_steps(message, max(len(message.prefixes), 1))
    try:
        next(steps)
    except StopIteration as finished:
        update: StateUpdate = finished.value
        return update
    raise AssertionError("one slice takes all entries")


def _add_entries(update: StateUpdate, entries: Iterable[pb.PrefixEntry]) -> None:
    """Add *entries* in order, runs of plain ones at once."""
    hashes: list[bytes] = []
    counts: list[int] = []
    tier, adapter_id = 0, ""
    for entry in entries:
        if entry.block_hashes or entry.block_token_counts:
            if hashes:
                update.add_prefixes(hashes, counts, tier, adapter_id)
                hashes, counts = [], []
            _add_chain(update, entry)
            continue
        if entry.tier != tier or entry.adapter_id != adapter_id:
            if hashes:
                update.add_prefixes(hashes, counts, tier, adapter_id)
                hashes, counts = [], []
            tier, adapter_id = entry.tier, entry.adapter_id
        hashes.append(entry.prefix_hash)
        counts.append(entry.token_count)
    if hashes:
        update.add_prefixes(hashes, counts, tier, adapter_id)


def _add_chain(update: StateUpdate, entry: pb.PrefixEntry) -> None:
    update.add_chain(
        entry.block_hashes[:],
        entry.block_token_counts[:],
        tier=entry.tier,
        adapter_id=entry.adapter_id,
        prefix_hash=entry.prefix_hash,
        token_count=entry.token_count,
    )


def _stats_report(message: pb.ReplicaStats) -> StatsReport:
    return StatsReport(
        cache_memory_bytes=message.cache_memory_bytes,
        hit_rate=message.hit_rate,
        pressure=message.pressure,
        client_version=message.client_version,
        t2_hit_tokens=message.t2_hit_tokens,
        t2_query_tokens=message.t2_query_tokens,
    )
