"""Blocks that a replica holds in another tier stay apart from those beside them.

Once another replica reports both in one go, all else about the two runs is alike. Were they joined,
the tier of one would be told of the other's blocks, and a lookup would take a block in memory for
one in offload storage.
"""

import pytest
from index_driver import KEY, IndexDriver

from inferencecache.index import PrefixIndex, StateUpdate
from inferencecache.types import CacheTier

BLOCKS = [b"h%d" % number for number in range(1, 7)]


def report(index: PrefixIndex, replica_id: str, tiers: list[int]) -> None:
    """Report a prefix per block, each in its tier."""
    update = StateUpdate(tenant_id="t", model_id="m", replica_id=replica_id, hash_scheme="vllm")
    for number, (block, tier) in enumerate(zip(BLOCKS, tiers, strict=True), start=1):
        update.add_prefix(block, 16 * number, tier)
    index.report(update, 10)
    index.check_invariants()


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1), (2, 3)])
@pytest.mark.parametrize("asked", [2, 3, 4, 6])
def test_a_match_has_the_coldest_tier_of_its_own_blocks(
    driver: IndexDriver, first: int, second: int, asked: int
) -> None:
    """And of no others."""
    index = driver.index
    report(index, "A", [first] * 3 + [second] * 3)
    report(index, "B", [CacheTier.T1] * 6)
    chain = BLOCKS[:asked]
    found = {c[0]: c for c in index.match_chain(KEY, chain, [16] * asked, 11)}

    wanted = first if asked <= 3 else max(first, second)
    assert found["A"][3] == wanted
