"""An outbox taken in parts."""

import pytest
from held_index import HeldIndex

from inferencecache.events import Clear, Evict, Outbox, StoreRun
from inferencecache.settings.producer import OutboxSettings
from inferencecache.types import CacheTier


def run(keys: list[int], parent: int | None = None, first: int = 16) -> StoreRun:
    """Return keys that were never held before."""
    return StoreRun(
        adapter_id="",
        tier=CacheTier.T1,
        keys=keys,
        parent_key=parent,
        first_token_count=first,
        is_fresh=True,
    )


@pytest.mark.parametrize("keys_max", [1, 2, 3, 7, 100])
def test_parts_add_up_to_the_whole(keys_max: int) -> None:
    """However it is cut, the index ends up the same, and no part is too large."""
    index = HeldIndex()
    outbox = Outbox(OutboxSettings(), 16)
    outbox.add([run([90, 91]), Clear(), run([1, 2, 3]), run([4, 5, 6], 3, 64), run([7], 1, 32)])
    outbox.add([Evict(adapter_id="", keys=[2, 80, 81])])
    while (delivery := outbox.take(keys_max)) is not None:
        index.deliver(delivery)
        stored = sum(len(entry.block_hashes) for entry in delivery.chains)
        assert stored + len(delivery.evictions) <= keys_max

    assert {key: count for (_, key), (_, count) in index.held.items()} == {
        1: 16,
        3: 48,
        4: 64,
        5: 80,
        6: 96,
        7: 32,
    }
    assert index.clears == 1
    assert outbox.is_empty


def test_changes_between_parts_count() -> None:
    """A key taken before is evicted for real, one that still waits is never sent."""
    outbox = Outbox(OutboxSettings(), 16)
    outbox.add([run([1, 2, 3, 4])])
    first = outbox.take(2)
    outbox.add([Evict(adapter_id="", keys=[1, 4])])
    second = outbox.take(10)

    assert first is not None
    assert second is not None
    assert [int.from_bytes(found.block_hash, "big") for found in second.evictions] == [1]
    assert [
        int.from_bytes(found[0], "big") for found in [e.block_hashes for e in second.chains]
    ] == [3]
    assert outbox.take() is None


def test_no_chain_comes_before_the_last_eviction() -> None:
    """A store may repair what an eviction in the base partition took, so it comes later."""
    outbox = Outbox(OutboxSettings(), 16)
    outbox.add([run([1]), Evict(adapter_id="", keys=[5, 6, 7])])
    parts = [outbox.take(2), outbox.take(2)]

    assert [(len(part.evictions), len(part.chains)) for part in parts if part] == [(2, 0), (1, 1)]
