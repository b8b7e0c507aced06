"""Late events of a replica's old life: a clear clears, and one unknown block stops nothing.

Replica ids are reused after a restart, and batches of removals name blocks nobody knows.
"""

from field_rig import FieldRig, keys


def test_late_clear_still_clears_everything() -> None:
    """ALL_CLEARED is taken at its word whatever its stamp: a lost entry only costs a miss."""
    rig = FieldRig()
    rig.move_to(10)
    rig.report("A", keys(64))
    rig.move_to(11)
    rig.clear("A", stamp_s=5)

    assert rig.index.entries == 0


def test_late_clear_does_not_fence_the_new_life() -> None:
    """The fence stands at the clear's own stamp, so the new life's reports count."""
    rig = FieldRig()
    rig.move_to(10)
    rig.clear("A", stamp_s=5)
    rig.report("A", keys(64), stamp_s=6)

    assert rig.matched(keys(64)) == {"A": 64}


def test_unknown_blocks_around_a_known_one_do_not_shield_it() -> None:
    """Of unknown, known, unknown the known one is removed."""
    rig = FieldRig()
    blocks = keys(128)
    rig.report("A", blocks)
    for block in (b"unknown1", blocks[-1], b"unknown2"):
        rig.evict("A", block)

    assert rig.matched(blocks) == {"A": 112}
    assert rig.index.entries == 7
