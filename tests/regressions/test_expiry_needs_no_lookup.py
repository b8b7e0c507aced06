"""Expired entries go by the sweep alone; nobody has to ask for them."""

from field_rig import FieldRig

from inferencecache.fingerprint import chain


def test_entries_nobody_asks_for_are_swept() -> None:
    """100,000 keys with a TTL of 2 s are gone after two sweeps, and the gauge says 0."""
    rig = FieldRig(ttl_s=2)
    for number in range(200):
        first = number * 500 * 16
        rig.report("A", chain(range(first, first + 500 * 16), 16))
    assert rig.index.prefixes_by_model == {"m1": 100_000}

    for now_s in (1, 2):
        rig.move_to(now_s)
        rig.target.sweep()

    assert rig.index.prefixes_by_model == {"m1": 0}
    assert rig.index.entries == 0
    assert rig.index.is_empty()
