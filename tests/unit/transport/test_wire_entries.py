"""Entries of one block each, cut out of an update's bytes: the same as read one by one."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.index import StateUpdate
from inferencecache.transport.convert_report import (
    state_update,
    update_at_once,
    update_of_entries,
)
from inferencecache.transport.wire_entries import cut_entries
from inferencecache.transport.wire_update import read_update
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

ENTRIES = 40

kinds = st.tuples(st.sampled_from([0, 1, 2, -1]), st.sampled_from(["", "a", "é" * 20]))
counts = st.one_of(
    st.integers(0, 2**31 - 1),
    st.sampled_from([0, 1, 127, 128, 16_383, 16_384, 2**21 - 1, 2**21, 2**28 - 1, 2**28, -1]),
)


@st.composite
def alike(draw: st.DrawFn) -> list[pb.PrefixEntry]:
    """Draw entries of one kind and one width of hash, their counts regular or not."""
    width = draw(st.integers(1, 40))
    tier, adapter_id = draw(kinds)
    first, step = draw(st.integers(0, 2**21)), draw(st.integers(0, 2**17))
    regular = [first + step * place for place in range(ENTRIES)]
    per_block = draw(st.just(regular) | st.lists(counts, min_size=ENTRIES, max_size=ENTRIES))
    seed = draw(st.integers(0, 255))
    return [
        pb.PrefixEntry(
            prefix_hash=bytes((seed + place + at) & 255 for at in range(width)),
            token_count=count,
            tier=tier,  # type: ignore[arg-type] # enums are open on the wire
            adapter_id=adapter_id,
        )
        for place, count in enumerate(per_block)
    ]


def message_of(prefixes: list[pb.PrefixEntry]) -> bytes:
    """Return a serialised update with *prefixes* among its other fields."""
    return pb.CacheStateUpdate(
        replica_id="r",
        model_id="m",
        tenant_id="t",
        hash_scheme="s",
        timestamp_us=7,
        adapter_id="d",
        prefixes=prefixes,
        stats=pb.ReplicaStats(pressure=0.5),
    ).SerializeToString()


def chain_of(counts_of_blocks: list[int], **others: object) -> list[pb.PrefixEntry]:
    """Return an entry per count, each with a hash of its own."""
    return [
        pb.PrefixEntry(prefix_hash=b"%08d" % place, token_count=count, **others)  # type: ignore[arg-type]
        for place, count in enumerate(counts_of_blocks)
    ]


def seen(update: StateUpdate | None) -> object:
    """Return all that an update says, however it was read."""
    if update is None:
        return None
    update.close()
    names = update.tenant_id, update.model_id, update.replica_id, update.hash_scheme
    others = update.timestamp_ns, update.adapter_id, update.stats, update.entries, update.drops
    blocks = [
        (each.adapter_id, each.tier, *block)
        for each in update.stretches
        for block in zip(each.hashes, each.token_counts, strict=True)
    ]
    return names, others, blocks


def as_the_library_reads(data: bytes) -> object:
    """Return what an update says that the library takes apart."""
    message = read_update(data)
    return None if message is None else seen(update_at_once(message))


@given(st.lists(alike(), min_size=1, max_size=3))
def test_an_update_says_the_same_however_it_is_read(groups: list[list[pb.PrefixEntry]]) -> None:
    """Blocks, counts, kinds, drops and order are those of the entries one by one."""
    data = message_of([entry for group in groups for entry in group])

    assert seen(state_update(data)) == as_the_library_reads(data)


@given(alike(), st.binary(min_size=1, max_size=6), st.data())
def test_damage_anywhere_is_seen(
    prefixes: list[pb.PrefixEntry], patch: bytes, at: st.DataObject
) -> None:
    """What is overwritten or cut off in an update is judged as the library judges it."""
    whole = message_of(prefixes)
    start = at.draw(st.integers(0, len(whole)))
    for data in (whole[:start] + patch + whole[start + len(patch) :], whole[:start]):
        assert seen(state_update(data)) == as_the_library_reads(data)


@pytest.mark.parametrize("first", [16, 300])
@pytest.mark.parametrize("number", [0, 1, 20, 39])
def test_every_byte_of_an_entry_is_looked_at(first: int, number: int) -> None:
    """Whichever is another one, in whichever entry."""
    entry = pb.PrefixEntry(prefix_hash=b"12345678", token_count=first, tier=2, adapter_id="a")
    record = pb.CacheStateUpdate(prefixes=[entry]).SerializeToString()
    whole, start = record * ENTRIES, number * len(record)
    for at in range(start, start + len(record)):
        others = {*b"\x00\x01\x05\x0a\x10\x1a\x22\x28\x32\x7f\x80\xff"} | {whole[at] ^ 1}
        for byte in others:
            data = whole[:at] + bytes((byte,)) + whole[at + 1 :]
            assert seen(state_update(data)) == as_the_library_reads(data)


@pytest.mark.parametrize("step", [1, 16, 100, 50_000])
def test_a_chain_is_one_stretch_with_counts_in_constant_space(step: int) -> None:
    """Its counts take one to four bytes, and are one range."""
    prefixes = chain_of([step * place for place in range(1, 2_001)])
    update = update_of_entries(message_of(prefixes))

    assert update is not None
    (stretch,) = update.stretches
    assert stretch.token_counts == range(step, step * 2_001, step)
    assert list(stretch.hashes) == [entry.prefix_hash for entry in prefixes]


def test_counts_need_not_be_regular() -> None:
    """Falling, equal and jumping counts are those that were sent."""
    sent = [500, 16, 16, 2**28 - 1, 1, 127, 128, 129] * 10
    data = message_of(chain_of(sorted(sent)))
    update = update_of_entries(data)

    assert update is not None
    assert list(update.stretches[0].token_counts) == sorted(sent)


def test_each_tier_and_adapter_is_a_stretch_of_its_own() -> None:
    """Entries that differ in more than hash and count are not put together."""
    prefixes = [
        *chain_of([16, 32, 48] * 5, tier=2),
        *chain_of([16, 32, 48] * 5, tier=2, adapter_id="a"),
        *chain_of([16, 32, 48] * 5),
    ]
    update = update_of_entries(message_of(prefixes))

    assert update is not None
    assert [(each.tier, each.adapter_id) for each in update.stretches] == [
        (2, ""),
        (2, "a"),
        (1, ""),
    ]


@pytest.mark.parametrize(
    "odd",
    [
        pb.PrefixEntry(prefix_hash=b"12345678", token_count=-1),
        pb.PrefixEntry(prefix_hash=b"12345678", token_count=2**28),
        pb.PrefixEntry(prefix_hash=b"12345678", token_count=16, tier=3),
        pb.PrefixEntry(token_count=16),
        pb.PrefixEntry(block_hashes=[b"12345678"], block_token_counts=[16]),
    ],
)
def test_one_entry_of_another_shape_leaves_all_to_the_library(odd: pb.PrefixEntry) -> None:
    """In the middle of others it is not skipped, and they are not either."""
    half = chain_of([16] * 20, tier=2)
    data = message_of([*half, odd, *half])

    assert seen(state_update(data)) == as_the_library_reads(data)
    update = state_update(data)
    assert update is not None
    assert update.entries == 41


def test_a_broken_entry_breaks_the_message() -> None:
    """A tail that no parser takes is found where all entries have it."""
    entry = b"\x0a\x0812345678\x32\x01\xff"
    data = b"".join(b"\x32%c%b" % (len(entry), entry) for _ in range(ENTRIES))

    with pytest.raises(DecodeError):
        cut_entries(data)
    assert state_update(data) is None


def test_entries_behind_other_fields_count_too() -> None:
    """The rest of a message may hold more of them, which is no reason to lose any."""
    head = message_of(chain_of([16] * 20))
    data = (
        head
        + b"\xfa\x07\x01x"
        + pb.CacheStateUpdate(prefixes=chain_of([32] * 20)).SerializeToString()
    )

    update = state_update(data)
    assert update is not None
    assert update.entries == 40


def test_very_many_entries_are_left_to_those_who_read_in_slices() -> None:
    """What is cut out in one step is bounded."""
    assert cut_entries(message_of(chain_of([16] * 4_096))) is not None
    assert cut_entries(message_of(chain_of([16] * 4_097))) is None
