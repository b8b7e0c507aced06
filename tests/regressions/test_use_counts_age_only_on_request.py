"""LFU use counts never age by themselves; halving them lets newer entries in again."""

from index_twin import TableRules

from inferencecache.index import PrefixIndex, StateUpdate
from inferencecache.settings.index import IndexSettings
from inferencecache.types import EvictionAlgorithm, PartitionKey

KEY = PartitionKey("t", "m", "vllm", "")


def reported(index: PrefixIndex, block: bytes, now_ns: int) -> None:
    """Report one block to the index."""
    place = {"model_id": "m", "replica_id": "r", "hash_scheme": "vllm"}
    update = StateUpdate(tenant_id="t", **place)
    update.add_prefix(block, 64)
    index.report(update, now_ns)


def full_index() -> PrefixIndex:
    """Return an index at its cap of two, one entry used once, the newer one twice."""
    rules = TableRules(algorithms={"t": EvictionAlgorithm.LFU})
    index = PrefixIndex(IndexSettings(entries_max=2), rules)
    reported(index, b"old", 1_000)
    reported(index, b"new", 2_000)
    for block in (b"old", b"new", b"new"):
        index.credit(KEY, [block], {"r": 1})
    return index


def holds(index: PrefixIndex, block: bytes) -> bool:
    """Return whether the block is held."""
    return bool(index.match_exact(KEY, block, 3_000))


def test_a_newcomer_is_its_own_victim_while_all_are_used() -> None:
    """However often it is reported, it never gets in."""
    index = full_index()
    for now_ns in (3_000, 4_000):
        reported(index, b"newcomer", now_ns)

    assert [holds(index, block) for block in (b"old", b"new", b"newcomer")] == [True, True, False]


def test_halving_makes_room_where_use_was_least() -> None:
    """One use halves to none, two to one: the entry used once goes."""
    index = full_index()
    for _ in index.halve_credits_slices():
        index.check_invariants()
    reported(index, b"newcomer", 3_000)

    assert [holds(index, block) for block in (b"old", b"new", b"newcomer")] == [False, True, True]


def test_halving_is_off_by_default() -> None:
    """The setting that halves counts every so often starts at never."""
    assert IndexSettings().lfu_halving_interval_ns == 0
