"""The longest match does not drain all traffic to a replica that is full."""

import pytest
from field_rig import FieldRig, keys

from inferencecache.v1alpha1 import inferencecache_pb2 as wire


def rig_with(pressure: float | None) -> FieldRig:
    """Return A with 128 tokens under *pressure*, B idle with 96, C with something else."""
    rig = FieldRig()
    stats = None if pressure is None else wire.ReplicaStats(pressure=pressure)
    rig.report("A", keys(128), stats=stats)
    rig.report("B", keys(96), stats=wire.ReplicaStats(pressure=0.0))
    rig.report("C", [b"unrelated"])
    return rig


def test_full_replica_scores_nothing() -> None:
    """A at pressure 1 is last with score 0, B first with its shorter match."""
    answer = rig_with(1.0).look_up(keys(128))

    assert answer.reason_code == "PREFIX_MATCH"
    first, last = answer.replica_scores
    assert (first.replica_id, first.matched_tokens) == ("B", 96)
    assert first.score == pytest.approx(96 * (1 - 2 / 3), rel=1e-6)
    assert (last.replica_id, last.score, last.matched_tokens) == ("A", 0.0, 128)


def test_replica_without_statistics_counts_as_idle() -> None:
    """Without statistics nothing is known against A, so the longest match wins."""
    answer = rig_with(None).look_up(keys(128))

    assert [score.replica_id for score in answer.replica_scores] == ["A", "B"]
    assert answer.replica_scores[0].score == pytest.approx(128 * (1 - 1 / 3), rel=1e-6)
