"""A quota that is lifted and set again while reports are being stored: each victim is right."""

from collections import deque
from collections.abc import Iterator

import pytest
from index_twin import TableRules

from inferencecache.index import PrefixIndex, StateUpdate
from inferencecache.settings.index import IndexSettings
from inferencecache.types import PartitionKey

KEY = PartitionKey("t", "m", "vllm", "")
BLOCKS = [b"%08d" % number for number in range(20)]
QUOTA = 5


def report_of(block: bytes) -> StateUpdate:
    """Return a report of one block."""
    update = StateUpdate(tenant_id="t", model_id="m", replica_id="r", hash_scheme="vllm")
    update.add_prefix(block, 16)
    return update


def set_quota(rules: TableRules, quota: int | None) -> None:
    """Change how many keys the tenant may have."""
    rules.quotas["t"] = quota
    rules.revision += 1


def step(slices: Iterator[None], times: int) -> None:
    """Do some slices."""
    for _ in range(times):
        next(slices)


@pytest.mark.parametrize("first_slices", range(1, 20))
@pytest.mark.parametrize("second_slices", [1, 10])
def test_the_stalest_go_whichever_report_finishes_first(
    first_slices: int, second_slices: int
) -> None:
    """What one report has begun to order under one quota is not finished by another's."""
    rules = TableRules()
    index = PrefixIndex(IndexSettings(slice_blocks=1), rules)
    for seen_ns, block in enumerate(BLOCKS, start=1):
        index.report(report_of(block), seen_ns)

    set_quota(rules, QUOTA)
    first, lifted, second = (index.report_slices(report_of(BLOCKS[-1]), 20) for _ in range(3))
    step(first, first_slices)
    step(lifted, 1)
    set_quota(rules, None)
    deque(lifted, maxlen=0)
    set_quota(rules, QUOTA)
    step(second, second_slices)
    for slices in (first, second):
        deque(slices, maxlen=0)
        index.check_invariants()
        assert index.prefixes == QUOTA

    assert [bool(index.match_exact(KEY, block, 0)) for block in BLOCKS] == [False] * 15 + [True] * 5
