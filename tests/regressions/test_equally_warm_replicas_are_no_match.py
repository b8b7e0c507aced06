"""Where every replica is equally warm, the cache says nothing about where to go."""

from field_rig import FieldRig, keys

NO_AFFINITY = b'{"version":7,"policies":[{"namespace":"t1","affinityRouting":false}]}'


def test_chain_held_by_all_becomes_affinity() -> None:
    """The match scores 0, below the floor, and affinity spreads the prompts instead."""
    rig = FieldRig()
    rig.report("A", keys(128))
    rig.report("B", keys(128))

    assert rig.look_up(keys(128)).reason_code == "AFFINITY_HINT"

    assert rig.target.push_policy(NO_AFFINITY) == 204
    assert rig.look_up(keys(128)).reason_code == "NO_HINT"


def test_chain_held_by_one_of_two_scores_half() -> None:
    """128 tokens, just reported, on one of two replicas: 64."""
    rig = FieldRig()
    rig.report("A", keys(128))
    rig.report("B", [b"unrelated"])

    (score,) = rig.look_up(keys(128)).replica_scores
    assert (score.replica_id, score.score, score.matched_tokens) == ("A", 64.0, 128)
