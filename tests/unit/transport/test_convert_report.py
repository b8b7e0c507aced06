"""From CacheStateUpdate to the index's builder: nothing lost, order kept, bounded slices."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.index import StateUpdate
from inferencecache.transport.convert import state_update, update_steps
from inferencecache.transport.wire_update import read_update
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

hashes = st.binary(max_size=3) | st.binary(min_size=8, max_size=8)
counts = st.integers(-2, 300)
entries = st.lists(
    st.builds(
        pb.PrefixEntry,
        prefix_hash=hashes,
        token_count=counts,
        block_hashes=st.lists(hashes, max_size=2),
        block_token_counts=st.lists(counts, max_size=2),
        tier=st.sampled_from([0, 1, 2, -1]),
        adapter_id=st.sampled_from(["", "a", "é" * 40]),
    )
    | st.builds(
        pb.PrefixEntry,
        prefix_hash=st.binary(min_size=8, max_size=8),
        token_count=st.integers(0, 2**14),
    ),
    max_size=12,
)
odd_entries = st.lists(
    st.lists(
        st.sampled_from(
            [
                b"\x0a\x02ab",  # a hash
                b"\x0a\x00",  # an empty hash
                b"\x0a\x82\x00ab",  # a hash whose length takes more bytes than it needs
                b"\x0a\x05ab",  # a hash cut off
                b"\x0a\x80",
                b"\x10\x10",  # a count
                b"\x10\x00",
                b"\x10\x90\x00",  # a count that takes more bytes than it needs
                b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a negative count
                b"\x10\x90",  # a count cut off
                b"\x28\x02",  # a tier
                b"\x28\x00",
                b"\x32\x01a",  # an adapter
                b"\x32\x00",
                b"\x32\x01\xff",  # an adapter that is not UTF-8
                b"\x1a\x02cd",  # a block of a chain
                b"\x22\x01\x10",  # its count
                b"\x0d\x02ab\x00",  # the hash's number with the kind of four bytes
                b"\xfa\x07\x01x",  # a field nobody knows
                b"\x02\x01a",  # the field 0, which cannot be
            ]
        ),
        max_size=4,
    ).map(b"".join)
    | st.binary(max_size=5),
    max_size=6,
)
"""Entries as bytes: repeated, misplaced, superfluous and broken fields."""


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
        (stretch.adapter_id or update.adapter_id, stretch.tier, block_hash, count)
        for stretch in update.stretches
        for block_hash, count in zip(stretch.hashes, stretch.token_counts, strict=True)
    ]


def read_whole(message: pb.CacheStateUpdate) -> StateUpdate:
    """Return *message* as it is read off the wire."""
    update = state_update(message.SerializeToString())
    assert update is not None
    return update


def serialised(entry_bytes: list[bytes]) -> bytes:
    """Return an update with entries of any bytes."""
    return b"".join(b"\x32%c%b" % (len(data), data) for data in entry_bytes)


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
    wire = read_update(message.SerializeToString())
    assert wire is not None
    steps = update_steps(wire, size)
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            sliced = finished.value
            break
        pauses += 1

    expected = one_by_one(message)
    for update in (sliced, read_whole(message)):
        assert blocks_of(update) == blocks_of(expected)
        assert update.drops == expected.drops
        assert update.entries == expected.entries
    assert pauses == max(0, -(-len(prefixes) // size) - 1)


@given(
    st.lists(st.binary(min_size=7, max_size=9) | st.just(b"12345678"), min_size=30, max_size=40)
    | st.lists(st.binary(min_size=8, max_size=8), min_size=30, max_size=40),
    st.lists(st.integers(-1, 300), min_size=30, max_size=40)
    | st.integers(0, 300).map(lambda count: [count] * 40),
    st.binary(max_size=9),
    st.binary(max_size=4),
)
def test_long_chains_are_read_as_the_library_reads_them(
    chain: list[bytes], per_block: list[int], prefix_hash: bytes, more: bytes
) -> None:
    """A chain cut out of its bytes is the chain the library sees, whatever follows it."""
    entry = pb.PrefixEntry(
        prefix_hash=prefix_hash,
        token_count=7,
        block_hashes=chain,
        block_token_counts=per_block[: len(chain)],
        tier=2,
        adapter_id="a",
    )
    data = entry.SerializeToString() + more
    framed = b"\x32%c%c%b" % (len(data) & 127 | 128, len(data) >> 7, data)
    try:
        plain = one_by_one(pb.CacheStateUpdate.FromString(framed))
    except DecodeError:
        plain = None
    read = state_update(framed)

    assert (read is None) == (plain is None)
    if read is not None and plain is not None:
        plain_blocks = [(a or "d", *rest) for a, *rest in blocks_of(plain)]
        assert [(a or "d", *rest) for a, *rest in blocks_of(read)] == plain_blocks
        assert read.drops == plain.drops


@given(odd_entries)
def test_entries_of_any_bytes_are_read_as_the_library_reads_them(odd: list[bytes]) -> None:
    """What the last of a repeated field says counts, and one broken entry breaks the message."""
    data = serialised(odd)
    update = state_update(data)
    try:
        expected = one_by_one(pb.CacheStateUpdate.FromString(data))
    except DecodeError:
        assert update is None
        return

    assert update is not None
    assert [block[1:] for block in blocks_of(update)] == [b[1:] for b in blocks_of(expected)]
    assert [block[0] or "d" for block in blocks_of(update)] == [b[0] for b in blocks_of(expected)]
    assert update.drops == expected.drops
    assert update.entries == expected.entries


@given(st.binary(max_size=20), st.integers(0, 80), entries)
def test_damaged_updates_parse_where_the_library_parses_them(
    patch: bytes, at: int, prefixes: list[pb.PrefixEntry]
) -> None:
    """Bytes overwritten anywhere, or cut off, make no difference between the two."""
    whole = message_of(prefixes).SerializeToString()
    for data in (whole[:at] + patch + whole[at + len(patch) :], whole[:at]):
        try:
            pb.CacheStateUpdate.FromString(data)
        except DecodeError:
            assert state_update(data) is None
        else:
            assert state_update(data) is not None


def test_entries_of_a_chain_stay_together_whatever_their_counts_take() -> None:
    """Counts of one, two and three bytes do not take a chain apart."""
    prefixes = [
        pb.PrefixEntry(prefix_hash=b"%08d" % number, token_count=16 * (number + 1))
        for number in range(1_040)
    ]
    update = read_whole(message_of(prefixes))
    update.close()

    assert [len(stretch.hashes) for stretch in update.stretches] == [1_040]
    assert update.stretches[0].token_counts == range(16, 16 * 1_041, 16)


def test_scope_and_time_are_taken_over() -> None:
    """Names as they are, microseconds as nanoseconds, statistics only where present."""
    bare = read_whole(message_of([]))

    assert (bare.tenant_id, bare.model_id, bare.replica_id) == ("t", "m", "r")
    assert (bare.hash_scheme, bare.timestamp_ns, bare.stats) == ("s", 7_000, None)

    stats = pb.ReplicaStats(hit_rate=0.5, t2_hit_tokens=3, client_version="v")
    empty_stats = read_whole(pb.CacheStateUpdate(stats=pb.ReplicaStats()))
    full_stats = read_whole(pb.CacheStateUpdate(stats=stats))

    assert empty_stats.stats is not None
    assert full_stats.stats is not None
    assert (full_stats.stats.hit_rate, full_stats.stats.t2_hit_tokens) == (0.5, 3)
    assert full_stats.stats.client_version == "v"


@pytest.mark.parametrize("stamp_us", [0, -(2**63), 2**63 - 1])
def test_any_timestamp_has_nanoseconds(stamp_us: int) -> None:
    """The widest stamps of the wire do not overflow."""
    update = read_whole(pb.CacheStateUpdate(timestamp_us=stamp_us))

    assert update.timestamp_ns == stamp_us * 1_000


@pytest.mark.parametrize("entry", [pb.PrefixEntry(), pb.PrefixEntry(token_count=7, tier=1)])
def test_many_entries_without_a_hash_are_read_in_one_step(entry: pb.PrefixEntry) -> None:
    """They are as many as were sent, each for the index to refuse."""
    data = pb.CacheStateUpdate(prefixes=[entry] * 5_000).SerializeToString()
    message = read_update(data)
    assert message is not None
    steps = update_steps(message, 10_000)
    with pytest.raises(StopIteration) as ended:
        next(steps)
    assert ended.value.value.entries == 5_000
