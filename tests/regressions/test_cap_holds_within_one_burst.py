"""The cap is global and enforced with each update, not by a timer or per replica."""

from field_rig import FieldRig

from inferencecache.fingerprint import chain
from inferencecache.types import EvictionAlgorithm

CAP = 10_000
UPDATE_BLOCKS = 500


def test_burst_of_five_replicas_never_passes_the_cap() -> None:
    """Of 50,000 keys in one burst 40,000 are evicted, and no moment holds more than the cap."""
    rig = FieldRig(max_entries=CAP)
    for number in range(100):
        first = number * UPDATE_BLOCKS * 16
        rig.report(f"r{number % 5}", chain(range(first, first + UPDATE_BLOCKS * 16), 16))
        assert rig.index.entries <= CAP

    assert rig.index.entries == CAP
    assert rig.index.counters.evictions == {(EvictionAlgorithm.LRU, "cap"): 40_000}
    rig.index.check_invariants()


def test_one_update_larger_than_the_cap_leaves_exactly_the_cap() -> None:
    """The head of the chain stays: its deeper blocks are worthless without it."""
    rig = FieldRig(max_entries=100)
    blocks = chain(range(16 * 1_000), 16)
    rig.report("A", blocks)

    assert rig.index.entries == 100
    assert rig.matched(blocks) == {"A": 1_600}


def test_quota_takes_only_the_tenants_own_oldest() -> None:
    """A tenant over its quota loses its own stalest keys and nobody else's."""
    rig = FieldRig()
    body = b'{"version":7,"tenants":[{"tenantID":"t1","maxIndexEntries":1000}]}'
    assert rig.target.push_policy(body) == 204
    rig.report("A", chain(range(16 * 2_000), 16), tenant_id="other")
    for number in range(3):
        rig.move_to(number + 1)
        rig.report("A", chain(range(10**6 * number, 10**6 * number + 16 * 500), 16))

    assert rig.index.tenant_prefixes() == {"other": 2_000, "t1": 1_000}
    assert rig.index.counters.tenant_evictions == {"t1": 500}
    assert rig.matched(chain(range(16 * 500), 16)) == {}
    assert rig.matched(chain(range(10**6, 10**6 + 16 * 500), 16)) == {"A": 8_000}
