"""Of a chain that one report made, cap and quota take the deepest blocks, and only those."""

from hypothesis import given
from hypothesis import strategies as st
from index_twin import TableRules

from inferencecache.index import EventType, IndexEvent, PrefixIndex, StateUpdate
from inferencecache.settings.index import IndexSettings
from inferencecache.types import PartitionKey

BLOCKS = [bytes((0, 0, 0, 0, 0, 0, 5, number)) for number in range(12)]
NEW = [bytes((0, 0, 0, 0, 0, 0, 6, number)) for number in range(12)]
KEY = PartitionKey("t", "m", "vllm", "")
stretches = st.lists(st.tuples(st.integers(0, 11), st.integers(1, 12)), max_size=4)


def update(replica_id: str, blocks: list[bytes], *, is_chain: bool) -> StateUpdate:
    """Return a report of *blocks*, as a chain or one by one."""
    place = {"tenant_id": "t", "model_id": "m", "hash_scheme": "vllm"}
    state = StateUpdate(replica_id=replica_id, **place)
    if is_chain:
        state.add_chain(blocks, [16] * len(blocks))
    else:
        for number, block in enumerate(blocks, start=1):
            state.add_prefix(block, 16 * number)
    return state


def held_by_a(index: PrefixIndex) -> list[bool]:
    """Return which blocks of the chain replica ``a`` still holds."""
    found = [{c[0] for c in index.match_exact(KEY, block, 0)} for block in BLOCKS]
    return ["a" in replicas for replicas in found]


@given(cuts=stretches, newcomers=st.integers(1, 12), is_chain=st.booleans())
def test_the_cap_shortens_the_oldest_chain_from_its_end(
    cuts: list[tuple[int, int]], newcomers: int, *, is_chain: bool
) -> None:
    """However others' reports cut the chain, what is left of it is its head."""
    held = 12 + sum(min(12, first + length) - first for first, length in cuts)
    index = PrefixIndex(IndexSettings(entries_max=held), TableRules())
    index.report(update("a", BLOCKS, is_chain=is_chain), 1_000)
    for number, (first, length) in enumerate(cuts):
        index.report(update(f"b{number}", BLOCKS[first : first + length], is_chain=True), 2_000)
    index.report(update("c", NEW[:newcomers], is_chain=is_chain), 3_000)

    assert held_by_a(index) == [True] * (12 - newcomers) + [False] * newcomers


@given(
    evictions=st.sets(st.integers(0, 11), max_size=6),
    quota=st.integers(0, 12),
    is_chain=st.booleans(),
)
def test_the_quota_takes_the_deepest_keys(
    evictions: set[int], quota: int, *, is_chain: bool
) -> None:
    """Of the keys that evictions left of a chain, the first ones stay."""
    rules = TableRules()
    index = PrefixIndex(IndexSettings(), rules)
    index.report(update("a", BLOCKS, is_chain=is_chain), 1_000)
    place = {"tenant_id": "t", "model_id": "m", "replica_id": "a"}
    for number in sorted(evictions):
        event = IndexEvent(type=EventType.PREFIX_EVICTED, prefix_hash=BLOCKS[number], **place)
        index.apply(event, 2_000)
    rules.quotas["t"] = quota
    rules.revision += 1
    index.report(update("a", [], is_chain=False), 3_000)

    left = [number for number in range(12) if number not in evictions]
    assert held_by_a(index) == [number in left[:quota] for number in range(12)]
