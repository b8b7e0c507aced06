"""Equal scores come in replica order, always the same one."""

from field_rig import FieldRig, keys

REPLICAS = ["a", "B", "r10", "r2", "ä"]


def answer_of(order: list[str]) -> list[list[str]]:
    """Return a hundred answers with the replicas having reported in *order*."""
    rig = FieldRig()
    for replica_id in order:
        rig.report(replica_id, keys(128))
    rig.report("other", [b"unrelated"])
    answers = [rig.look_up(keys(128)) for _ in range(100)]
    return [[score.replica_id for score in answer.replica_scores] for answer in answers]


def test_equal_replicas_come_in_byte_order_every_time() -> None:
    """A hundred lookups, and a restart with another order of reports, give one order."""
    expected = sorted(REPLICAS, key=str.encode)

    assert answer_of(REPLICAS) == [expected] * 100
    assert answer_of(REPLICAS[::-1]) == [expected] * 100
