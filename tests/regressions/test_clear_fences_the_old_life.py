"""A report that was under way when its replica was cleared does not bring anything back.

A pod is deleted while an update is in flight: without a fence its entries stay with no owner.
"""

from field_rig import FieldRig, keys


def test_update_stamped_before_the_clear_is_dropped() -> None:
    """The old stream flushes after ALL_CLEARED; nothing of it is stored, and that is counted."""
    rig = FieldRig()
    rig.report("A", keys(64))
    rig.move_to(10)
    rig.clear("A", stamp_s=10)
    rig.move_to(11)
    rig.report("A", keys(64), stamp_s=9)

    assert rig.index.entries == 0
    assert rig.index.counters.fenced_updates == 1
    assert rig.look_up(keys(64)).reason_code == "NO_HINT"


def test_new_life_reports_at_once() -> None:
    """What the replica reports with the clear's stamp or later is its new life."""
    rig = FieldRig()
    rig.move_to(10)
    rig.clear("A")
    rig.report("A", keys(64), stamp_s=10)

    assert rig.matched(keys(64)) == {"A": 64}


def test_nothing_outlives_its_time_to_live() -> None:
    """Whatever order reports and clears come in, an entry is gone one TTL after its stamp."""
    rig = FieldRig(ttl_s=60, clear_fence=False)
    rig.clear("A", stamp_s=0)
    rig.move_to(30)
    rig.report("A", keys(64), stamp_s=-10)
    rig.move_to(50)
    rig.target.sweep()

    assert rig.index.entries == 0
