"""Changes that wait for a server: last one wins, order per key, compact runs."""

from engine_events import CLEARED, batch_of, keys, removed, stored, tokens
from held_index import HeldIndex

from inferencecache.events import Clear, EventMapper, Evict, Outbox, StoreRun
from inferencecache.events.outbox import wire_key
from inferencecache.settings.producer import MapperSettings, OutboxSettings
from inferencecache.types import CacheTier

T1, T2 = CacheTier.T1, CacheTier.T2


def outbox(**settings: object) -> Outbox:
    """Return an outbox for blocks of 16."""
    return Outbox(OutboxSettings(**settings), 16)  # type: ignore[arg-type]


def run(own: list[int], parent: int | None = None, **more: object) -> StoreRun:
    """Return a fresh run of base keys at T1, the first one ending at 16 tokens."""
    fields = {"adapter_id": "", "tier": T1, "first_token_count": 16, "is_fresh": True, **more}
    return StoreRun(keys=list(own), parent_key=parent, **fields)  # type: ignore[arg-type]


def test_nothing_pending_is_no_delivery() -> None:
    """An idle outbox has nothing to send."""
    box = outbox()
    assert box.is_empty
    assert box.take() is None


def test_contiguous_runs_become_one_chain_with_whole_prompt_counts() -> None:
    """The first count of a suffix is the parent's total plus one block."""
    box = outbox()
    box.add([run([1, 2], parent=9, first_token_count=48)])
    box.add([run([3], parent=2, first_token_count=80), run([7], parent=1, first_token_count=64)])
    delivery = box.take()
    assert delivery is not None

    assert [entry.block_hashes for entry in delivery.chains] == [
        [wire_key(1), wire_key(2), wire_key(3)],
        [wire_key(7)],
    ]
    assert delivery.chains[0].block_token_counts() == [48, 16, 16]
    assert delivery.chains[1].block_token_counts() == [64]
    assert box.is_empty


def test_tiers_and_adapters_are_separate_entries() -> None:
    """A chain has one tier and one partition."""
    box = outbox()
    box.add([run([1]), run([2], parent=1, tier=T2), run([3], parent=2, adapter_id="a", tier=T2)])
    delivery = box.take()
    assert delivery is not None

    assert [(entry.adapter_id, entry.tier) for entry in delivery.chains] == [
        ("", T1),
        ("", T2),
        ("a", T2),
    ]


def test_store_and_removal_within_one_window_cancel_out() -> None:
    """A key the server never heard of is not evicted."""
    box = outbox()
    box.add([run([1, 2, 3]), Evict(adapter_id="", keys=[2])])
    delivery = box.take()
    assert delivery is not None

    assert delivery.evictions == []
    assert [entry.block_hashes for entry in delivery.chains] == [[wire_key(1)], [wire_key(3)]]
    assert delivery.chains[1].first_token_count == 48
    assert box.coalesced_keys == 1


def test_removal_of_what_the_server_may_know_is_sent() -> None:
    """A key sent before, or evicted and stored again, is evicted."""
    box = outbox()
    box.add([run([1])])
    box.take()
    box.add([Evict(adapter_id="", keys=[1]), run([1]), Evict(adapter_id="", keys=[1])])
    box.add([run([2], is_fresh=False), Evict(adapter_id="", keys=[2])])
    delivery = box.take()
    assert delivery is not None

    assert [eviction.block_hash for eviction in delivery.evictions] == [wire_key(1), wire_key(2)]
    assert delivery.chains == []


def test_store_after_removal_wins() -> None:
    """Only the last change of a key is sent."""
    box = outbox()
    box.add([Evict(adapter_id="", keys=[1]), run([1])])
    delivery = box.take()
    assert delivery is not None

    assert delivery.evictions == []
    assert [entry.block_hashes for entry in delivery.chains] == [[wire_key(1)]]


def test_last_tier_wins() -> None:
    """A key that moved twice goes out once."""
    box = outbox()
    box.add([run([1, 2]), run([1], tier=T2, is_fresh=False)])
    delivery = box.take()
    assert delivery is not None

    assert [(entry.tier, entry.block_hashes) for entry in delivery.chains] == [
        (T1, [wire_key(2)]),
        (T2, [wire_key(1)]),
    ]


def test_clear_drops_what_was_pending() -> None:
    """After a clear only what came later is sent."""
    box = outbox()
    box.add([run([1]), Evict(adapter_id="", keys=[5]), Clear(), run([2])])
    delivery = box.take()
    assert delivery is not None

    assert delivery.has_clear
    assert delivery.evictions == []
    assert [entry.block_hashes for entry in delivery.chains] == [[wire_key(2)]]


def test_overflow_asks_for_the_live_set() -> None:
    """Too many pending keys are dropped at once; a restart begins with a clear."""
    box = outbox(pending_keys_max=3)
    box.add([run([1, 2, 3, 4])])
    assert box.needs_live_set
    assert box.overflows == 1
    box.add([run([5])])
    assert box.take() is None

    box.restart()
    box.add([run([6])])
    delivery = box.take()
    assert delivery is not None
    assert delivery.has_clear
    assert len(delivery.chains) == 1


def test_repeated_stores_do_not_pile_up() -> None:
    """While a server is away, re-announced keys take the room of one announcement."""
    box = outbox()
    for _ in range(200):
        box.add([run(list(range(1_000)))])
    assert box.pending_keys == 1_000
    assert len(box._runs) < 100

    delivery = box.take()
    assert delivery is not None
    assert [len(entry.block_hashes) for entry in delivery.chains] == [1_000]


def test_updates_are_bounded() -> None:
    """A long chain is cut; its parts keep whole-prompt counts."""
    box = outbox()
    box.add([run(list(range(25))), run([100]), run([200])])
    delivery = box.take()
    assert delivery is not None
    updates = list(delivery.updates(10))

    assert [[len(entry.block_hashes) for entry in update] for update in updates] == [
        [10],
        [10],
        [5, 1, 1],
    ]
    assert [update[0].first_token_count for update in updates] == [16, 176, 336]


def test_server_that_was_away_converges() -> None:
    """Thirty windows of stores, removals and clears, delivered in one go, give the truth."""
    mapper = EventMapper(MapperSettings())
    box, index = outbox(), HeldIndex()
    for step in range(300):
        events = [stored([step], tokens(step * 100, 1))]
        if step % 3 == 0 and step > 30:
            events.append(removed([step - 30]))
        if step == 150:
            events.insert(0, CLEARED)
        box.add(mapper.apply(batch_of(events), 0))
        if step in {10, 200, 299}:
            index.deliver(box.take())

    assert index.tiers() == mapper.held_keys()
    assert keys(tokens(29_900, 1))[0] in index.held
