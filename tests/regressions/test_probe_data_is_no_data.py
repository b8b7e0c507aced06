"""What the self-test stores is data to nobody: not to the cold start, the cap or any count."""

from index_twin import TableRules

from inferencecache.index import PrefixIndex, StateUpdate
from inferencecache.settings.index import IndexSettings
from inferencecache.types import PROBE_TENANT_ID, PartitionKey


def reported(index: PrefixIndex, tenant_id: str, blocks: list[bytes]) -> None:
    """Report *blocks* to the index."""
    place = {"model_id": "m", "replica_id": "r", "hash_scheme": "vllm"}
    update = StateUpdate(tenant_id=tenant_id, **place)
    update.add_chain(blocks, [16] * len(blocks))
    index.report(update, 1_000)


def test_probe_entries_leave_the_index_empty_and_stay_findable() -> None:
    """An index that holds probe entries alone is as cold as an empty one."""
    index = PrefixIndex(IndexSettings(entries_max=1), TableRules())
    reported(index, PROBE_TENANT_ID, [b"a", b"b", b"c"])

    assert index.is_empty()
    assert (index.entries, index.prefixes, index.tenant_prefixes()) == (0, 0, {})
    assert index.snapshot().total_prefixes == 0
    key = PartitionKey(PROBE_TENANT_ID, "m", "vllm", "")
    assert [c[0] for c in index.match_exact(key, b"c", 1_000)] == ["r"]


def test_probe_entries_take_no_room_under_the_cap() -> None:
    """With a cap of one, three probe entries and one real one all stay."""
    index = PrefixIndex(IndexSettings(entries_max=1), TableRules())
    reported(index, "t", [b"x"])
    reported(index, PROBE_TENANT_ID, [b"a", b"b", b"c"])

    assert (index.entries, dict(index.counters.evictions)) == (1, {})
