"""From CacheStateUpdate to the index's builder: nothing lost, order kept, bounded slices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.index import StateUpdate
from inferencecache.transport.convert import state_update, update_steps
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

hashes = st.binary(max_size=3)
counts = st.integers(-2, 100)
entries = st.lists(
    st.builds(
        pb.PrefixEntry,
        prefix_hash=hashes,
        token_count=counts,
        block_hashes=st.lists(hashes, max_size=2),
        block_token_counts=st.lists(counts, max_size=2),
        tier=st.sampled_from([0, 1, 2, -1]),
        adapter_id=st.sampled_from(["", "a"]),
    ),
    max_size=12,
)


def message_of(prefixes: list[pb.PrefixEntry]) -> pb.CacheStateUpdate:
    """Return an update with *prefixes*."""
    return pb.CacheStateUpdate(
        replica_id="r",
        model_id="m",
        tenant_id="t",
        hash_scheme="s",
        timestamp_us=7,
        adapter_id="d",
        prefixes=prefixes,
    )


def blocks_of(update: StateUpdate) -> list[tuple[object, ...]]:
    """Return every block of *update* with all that is stored of it, in order."""
    update.close()
    return [
        (stretch.adapter_id, stretch.tier, block_hash, count)
        for stretch in update.stretches
        for block_hash, count in zip(stretch.hashes, stretch.token_counts, strict=True)
    ]


def one_by_one(message: pb.CacheStateUpdate) -> StateUpdate:
    """Build the update entry by entry, the obvious way."""
    update = StateUpdate(
        tenant_id="t", model_id="m", replica_id="r", hash_scheme="s", adapter_id="d"
    )
    for entry in message.prefixes:
        if entry.block_hashes or entry.block_token_counts:
            update.add_chain(
                list(entry.block_hashes),
                list(entry.block_token_counts),
                tier=entry.tier,
                adapter_id=entry.adapter_id,
                prefix_hash=entry.prefix_hash,
                token_count=entry.token_count,
            )
        else:
            update.add_prefix(entry.prefix_hash, entry.token_count, entry.tier, entry.adapter_id)
    return update


@given(entries, st.integers(1, 5))
def test_batches_and_slices_change_nothing(prefixes: list[pb.PrefixEntry], size: int) -> None:
    """However it is read, an update holds the same blocks in the same order, and the same drops."""
    message = message_of(prefixes)
    steps = update_steps(message, size)
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            sliced = finished.value
            break
        pauses += 1

    expected = one_by_one(message)
    for update in (sliced, state_update(message)):
        assert blocks_of(update) == blocks_of(expected)
        assert update.drops == expected.drops
        assert update.entries == expected.entries
    assert pauses == max(0, -(-len(prefixes) // size) - 1)


def test_scope_and_time_are_taken_over() -> None:
    """Names as they are, microseconds as nanoseconds, statistics only where present."""
    bare = state_update(message_of([]))

    assert (bare.tenant_id, bare.model_id, bare.replica_id) == ("t", "m", "r")
    assert (bare.hash_scheme, bare.timestamp_ns, bare.stats) == ("s", 7_000, None)

    empty_stats = state_update(pb.CacheStateUpdate(stats=pb.ReplicaStats()))

    assert empty_stats.stats is not None


@pytest.mark.parametrize("stamp_us", [0, -(2**63), 2**63 - 1])
def test_any_timestamp_has_nanoseconds(stamp_us: int) -> None:
    """The widest stamps of the wire do not overflow."""
    update = state_update(pb.CacheStateUpdate(timestamp_us=stamp_us))

    assert update.timestamp_ns == stamp_us * 1_000
