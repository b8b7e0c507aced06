"""A chain matched piece by piece gives what matching it at once gives."""

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.index import PackedHashes, PrefixIndex, StateUpdate
from inferencecache.policy import PolicyStore
from inferencecache.service.match_slices import SlicedMatch, piece_of
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.types import Candidate, PartitionKey

NOW_NS = 10_000
KEY = PartitionKey("t", "m", "s", "")
BLOCKS = [bytes([number]) for number in range(12)]

reports = st.lists(
    st.tuples(
        st.sampled_from("ABC"),
        st.integers(0, 11),
        st.integers(0, 12),
        st.integers(1, 3),
        st.integers(1, NOW_NS),
    ),
    max_size=12,
)
"""Replica, first block, blocks, tier and time of what is reported."""

chains = st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=16) | st.integers(1, 12).map(
    lambda stop: BLOCKS[:stop]
)


def filled(said: list[tuple[str, int, int, int, int]]) -> PrefixIndex:
    """Return an index that was told *said*; what is older than 9 us is stale."""
    index = PrefixIndex(IndexSettings(), PolicyStore(PolicySettings(), 9_000))
    for replica_id, start, blocks, tier, seen_ns in said:
        hashes = BLOCKS[start : start + blocks]
        update = StateUpdate(tenant_id="t", model_id="m", replica_id=replica_id, hash_scheme="s")
        update.timestamp_ns = seen_ns
        if hashes:
            update.add_chain(hashes, [16] * len(hashes), tier=tier)
        index.report(update, NOW_NS)
    return index


def in_slices(
    index: PrefixIndex, hashes: object, counts: object, slice_blocks: int
) -> list[Candidate]:
    """Return what is found piece by piece."""
    match = SlicedMatch(index, KEY, (hashes, counts), NOW_NS, slice_blocks)  # type: ignore[arg-type] # sequences of the test's own
    while match.step():
        pass
    return sorted(match.candidates())


@given(reports, chains, st.integers(1, 6), st.data())
def test_pieces_find_what_the_whole_finds(
    said: list[tuple[str, int, int, int, int]],
    chain: list[bytes],
    slice_blocks: int,
    data: st.DataObject,
) -> None:
    """Whoever ends where, how old and cold, packed or not, and whatever the counts are."""
    counts = data.draw(
        st.lists(st.sampled_from([0, 1, 16, 2**30]), min_size=len(chain), max_size=len(chain))
    )
    index = filled(said)
    whole = sorted(index.match_chain(KEY, chain, counts, NOW_NS))
    packed = PackedHashes(b"".join(b"\1%b\0" % block for block in chain), 1)

    assert in_slices(index, chain, counts, slice_blocks) == whole
    assert in_slices(index, packed, counts, slice_blocks) == whole


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=3),
    st.integers(1, 12),
    st.integers(1, 6),
    st.sampled_from([[0], [16], [0, 16], [1, 16, 255]]),
    st.data(),
)
def test_small_counts_come_as_bytes(
    held: list[int], length: int, slice_blocks: int, sizes: list[int], data: st.DataObject
) -> None:
    """All of one size, as most are, or not."""
    counts = data.draw(st.lists(st.sampled_from(sizes), min_size=length, max_size=length))
    index = filled(
        [(name, 0, blocks, 1, NOW_NS) for name, blocks in zip("ABC", held, strict=False)]
    )
    sums = {
        name: sum(counts[: min(blocks, length)]) for name, blocks in zip("ABC", held, strict=False)
    }

    found = in_slices(index, BLOCKS[:length], bytes(counts), slice_blocks)

    assert {name: tokens for name, tokens, *_ in found} == {
        name: tokens for name, tokens in sums.items() if tokens
    }


@given(st.integers(0, 12), st.integers(0, 12))
def test_pieces_of_packed_chains_stay_packed(start: int, stop: int) -> None:
    """And hold the blocks that a list would."""
    packed = PackedHashes(b"".join(b"\1%b\0" % block for block in BLOCKS), 1)
    piece = piece_of(packed, start, stop)

    assert type(piece) is PackedHashes
    assert list(piece) == BLOCKS[start:stop]
