"""Which replica an unknown prompt goes to depends on its hashes and the scope's members alone."""

import pytest
from field_rig import FieldRig, keys

PICKS = {1: "r0", 2: "r0", 3: "r2", 4: "r0", 5: "r1", 6: "r2"}
"""For the seed of tokens 1 to 48, whose hash begins with 7316196637037873816 as an integer."""


def picked(order: list[str]) -> str:
    """Return who is picked when the replicas reported in *order*."""
    rig = FieldRig()
    for replica_id in order:
        rig.report(replica_id, [b"held-by-" + replica_id.encode()])
    rig.report("r00", [b"elsewhere"], hash_scheme="sglang")
    answer = rig.look_up(keys(48))
    assert answer.reason_code == "AFFINITY_HINT"
    (score,) = answer.replica_scores
    assert (score.score, score.matched_tokens, score.estimated_cache_hit_prob) == (0, 0, 0)
    return score.replica_id


@pytest.mark.parametrize("members", PICKS)
def test_pick_is_the_hash_modulo_the_members(members: int) -> None:
    """Neither the order of reports nor a replica of another scheme changes the pick."""
    replicas = [f"r{number}" for number in range(members)]

    assert picked(replicas) == PICKS[members]
    assert picked(replicas[::-1]) == PICKS[members]
