"""What each tier has of a match is what plain reading of the reports gives, piece by piece, too."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.index import PrefixIndex, StateUpdate
from inferencecache.policy import PolicyStore
from inferencecache.service.in_tiers import InTiers
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.types import PartitionKey

NOW_NS = 10_000
STALE_NS = 1_000
KEY = PartitionKey("t", "m", "s", "")
BLOCKS = [bytes([number]) for number in range(12)]

Said = list[tuple[str, int, int, int, int]]
said_of_replicas: st.SearchStrategy[Said] = st.lists(
    st.tuples(
        st.sampled_from("ABC"),
        st.integers(0, 11),
        st.integers(1, 12),
        st.integers(1, 4),
        st.sampled_from([STALE_NS, NOW_NS]),
    ),
    max_size=12,
)
"""Replica, first block, blocks, tier and time of what is reported."""


def filled(said: Said) -> PrefixIndex:
    """Return an index that was told *said*."""
    index = PrefixIndex(IndexSettings(), PolicyStore(PolicySettings(), NOW_NS - STALE_NS))
    for replica_id, start, blocks, tier, seen_ns in said:
        hashes = BLOCKS[start : start + blocks]
        update = StateUpdate(tenant_id="t", model_id="m", replica_id=replica_id, hash_scheme="s")
        update.timestamp_ns = seen_ns
        update.add_chain(hashes, [16] * len(hashes), tier=tier)
        index.report(update, NOW_NS)
    return index


def plainly(said: Said, length: int) -> dict[str, dict[int, int]]:
    """Return what *said* comes to: of each block the last report counts, up to the first gap."""
    held: dict[tuple[str, int], tuple[int, int]] = {}
    for replica_id, start, blocks, tier, seen_ns in said:
        held |= {(replica_id, start + at): (tier, seen_ns) for at in range(blocks)}
    found: dict[str, dict[int, int]] = {}
    for replica_id in "ABC":
        tiers: Counter[int] = Counter()
        for at in range(length):
            tier, seen_ns = held.get((replica_id, at), (0, 0))
            if seen_ns <= STALE_NS:
                break
            tiers[tier] += 1
        if tiers:
            found[replica_id] = dict(tiers)
    return found


@given(said_of_replicas, st.integers(1, 12))
def test_each_tier_has_the_blocks_that_were_reported_there(said: Said, length: int) -> None:
    """As far as the match goes."""
    assert filled(said).match_tiers(KEY, BLOCKS[:length], NOW_NS) == plainly(said, length)


@given(said_of_replicas, st.integers(1, 12), st.integers(1, 5))
def test_pieces_come_to_the_same(said: Said, length: int, slice_blocks: int) -> None:
    """Whoever holds nothing but its own cache is not looked at, and one tier needs no telling."""
    index, chain = filled(said), BLOCKS[:length]
    tiers = InTiers(index.match_chain(KEY, chain, [16] * length, NOW_NS))
    while tiers.are_asked:
        piece = chain[tiers.at : tiers.at + slice_blocks]
        tiers.add(index.match_tiers(KEY, piece, NOW_NS), len(piece))
    several = {
        replica_id: tuple(sorted(blocks.items()))
        for replica_id, blocks in plainly(said, length).items()
        if len(blocks) > 1
    }
    assert dict(tiers.several()) == several
