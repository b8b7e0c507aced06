"""An outbox taken in parts."""

from functools import partial

import msgspec
import pytest
from held_index import HeldIndex
from hypothesis import given
from hypothesis import strategies as st
from work_counter import lines_run

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


@pytest.mark.parametrize("chains_max", [1, 2, 100])
@pytest.mark.parametrize("keys_max", [1, 2, 3, 7, 100])
def test_parts_add_up_to_the_whole(keys_max: int, chains_max: int) -> None:
    """However it is cut, the index ends up the same, and no part is too large."""
    index = HeldIndex()
    outbox = Outbox(OutboxSettings(), 16)
    outbox.add([run([90, 91]), Clear(), run([1, 2, 3]), run([4, 5, 6], 3, 64), run([7], 1, 32)])
    outbox.add([Evict(adapter_id="", keys=[2, 80, 81])])
    while (delivery := outbox.take(keys_max, chains_max)) is not None:
        assert len(delivery.chains) <= chains_max
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


def test_a_limit_of_chains_cuts_none() -> None:
    """Each comes whole, for what begins a part continues nothing before it."""
    outbox = Outbox(OutboxSettings(), 16)
    outbox.add([run([first, first + 1, first + 2]) for first in range(10, 100, 10)])
    chains = []
    while (delivery := outbox.take(chains_max=2)) is not None:
        assert len(delivery.chains) == (2 if len(chains) < 8 else 1)
        chains += delivery.chains

    assert [len(entry.block_hashes) for entry in chains] == [3] * 9
    assert outbox.pending_keys == 0


def test_a_part_of_many_short_chains_is_no_more_work_than_the_limit() -> None:
    """Ten times as many that wait, and the next part runs as many lines."""
    lines = {}
    for total in (200, 2_000):
        outbox = Outbox(OutboxSettings(), 16)
        outbox.add([run([number]) for number in range(total)])
        lines[total] = lines_run(partial(outbox.take, 10_000, 100))
        assert outbox.pending_keys == total - 100

    assert lines[2_000] == lines[200]


def test_updates_hold_few_short_chains() -> None:
    """A message of one-block chains takes its time to make, and others want the loop."""
    outbox = Outbox(OutboxSettings(), 16)
    outbox.add([run([number]) for number in range(600)])
    delivery = outbox.take()

    assert delivery is not None
    assert [len(group) for group in delivery.updates(100_000)] == [256, 256, 88]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 8), st.booleans()), max_size=30),
    st.integers(1, 9),
    st.integers(1, 4),
)
def test_any_parts_of_any_changes_end_in_the_same_index(
    changes: list[tuple[int, int, bool]], keys_max: int, chains_max: int
) -> None:
    """Parts are taken between changes and after them."""
    whole, parts = HeldIndex(), HeldIndex()
    one, other = Outbox(OutboxSettings(), 16), Outbox(OutboxSettings(), 16)
    for first, count, is_removal in changes:
        keys = list(range(first, first + count))
        change = Evict(adapter_id="", keys=keys) if is_removal else stored_again(keys)
        one.add([change])
        other.add([change])
        if (delivery := other.take(keys_max, chains_max)) is not None:
            parts.deliver(delivery)
    while (delivery := other.take(keys_max, chains_max)) is not None:
        parts.deliver(delivery)
    if (delivery := one.take()) is not None:
        whole.deliver(delivery)

    assert parts.tiers() == whole.tiers()


def stored_again(keys: list[int]) -> StoreRun:
    """Return keys that may have been held before."""
    return msgspec.structs.replace(run(keys, keys[0] - 1 if keys[0] else None), is_fresh=False)
