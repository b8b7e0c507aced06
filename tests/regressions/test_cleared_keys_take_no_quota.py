"""Keys of a cleared replica do not count against the quota, reclaimed already or not."""

from index_twin import IndexTwin
from index_vocabulary import CHAIN
from plain_update import PlainPrefix, PlainUpdate

from inferencecache.index import EventType, IndexEvent
from inferencecache.settings.index import IndexSettings


def test_quota_evicts_no_live_key_for_a_dead_one() -> None:
    """Two old keys, two cleared ones and two new ones are four: a quota of four takes none."""
    twin = IndexTwin(IndexSettings(slice_blocks=1))
    twin.rules.quotas["t"] = 4
    place = {"tenant_id": "t", "model_id": "m"}
    for replica_id, blocks in (("r2", CHAIN[7:9]), ("r1", (b"ab", b"d")), ("r3", CHAIN[:2])):
        prefixes = tuple(PlainPrefix(block, 16) for block in blocks)
        who = place | {"replica_id": replica_id}
        twin.report(PlainUpdate(hash_scheme="vllm", prefixes=prefixes, **who))
        if replica_id == "r1":
            twin.apply(IndexEvent(type=EventType.ALL_CLEARED, **who))
        twin.now_ns += 1

    twin.check()
