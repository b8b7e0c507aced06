"""What the slow cycle leaves out: what may be gone, and what nobody vouches for."""

from collections.abc import Callable

import pytest
from engine_events import CLEARED, Producer, batch_of, keys, moved, removed, stored, tokens
from engine_payloads import T16, batch, map_remove, map_store
from msgpack_bytes import TRUE, array, binary, integer, mapping, text

from inferencecache.events import (
    EventBatch,
    EventMapper,
    Operation,
    RankRouter,
    batch_slices,
    decode_batch,
)
from inferencecache.settings.producer import DecodeSettings, MapperSettings
from inferencecache.types import CacheTier

ONE = tokens(0, 1)
STORE = map_store([1], T16)
(T16_NAME,) = keys(T16)


def read(*events: bytes, **caps: int) -> EventBatch:
    """Return a decoded batch."""
    return decode_batch(batch(*events), DecodeSettings(**caps))


def kept_alive(producer: Producer) -> set[tuple[str, int]]:
    """Return what the slow cycle reports."""
    steps = producer.mapper.live_set(include_doubtful=False)
    return {(run.adapter_id, key) for runs in steps for run in runs for key in run.keys}


@pytest.mark.parametrize(
    "event",
    [
        map_remove([1], block_hashes=array([integer(1), TRUE])),
        map_remove([1], block_hashes=array([integer(1), binary(b"abc")])),
        map_remove([1], group_idx=integer(-1)),
        map_remove([1], group_idx=integer(2**16)),
        array([text("BlockRemoved"), array([integer(1)]), integer(3)]),
        binary(map_remove([1], group_idx=integer(-1))),
        binary(b"\xc1"),
        mapping({"block_hashes": array([integer(1)])}),
        integer(7),
    ],
)
def test_a_removal_that_cannot_be_read_casts_doubt(event: bytes) -> None:
    """What it may have removed is not kept alive, stored before it or with it."""
    producer = Producer()
    producer.feed(stored([9], ONE))
    found = read(STORE, event)
    assert sum(found.faults.values()) == 1
    producer.index.apply(producer.mapper.apply(found, 0))

    assert kept_alive(producer) == set()
    assert producer.held == dict.fromkeys([*keys(ONE), T16_NAME], CacheTier.T1)
    producer.feed(stored([5], tokens(500, 1)))
    assert kept_alive(producer) == set(keys(tokens(500, 1)))


@pytest.mark.parametrize(
    "event",
    [
        map_store([2], T16, block_size=TRUE),
        binary(map_store([2], T16, size=0)),
        mapping({"type": text("BlockPromoted")}),
        array([text("BlockPromoted"), integer(1)]),
    ],
)
def test_a_fault_that_removes_nothing_casts_no_doubt(event: bytes) -> None:
    """Stores take nothing away, and kinds that later releases add are counted only."""
    producer = Producer()
    found = read(STORE, event)
    assert sum(found.faults.values()) == 1
    producer.index.apply(producer.mapper.apply(found, 0))

    assert kept_alive(producer) == {T16_NAME}


def test_a_removal_over_a_cap_casts_doubt_in_every_slice() -> None:
    """It may concern what a later slice of its own batch stored before it."""
    blocks = [map_store([number], tokens(100 * number, 1)) for number in range(1, 4)]
    found = read(*blocks, map_remove([1, 2]), hashes_max=1)
    assert found.faults == {"block_hashes": 1}
    producer = Producer()
    for part in batch_slices(found, 1):
        producer.index.apply(producer.mapper.apply(part, 0))

    assert len(producer.held) == 3
    assert kept_alive(producer) == set()


def test_doubt_gives_up_stores_that_wait() -> None:
    """Their removal may be among what was lost, so they must not become certain later."""
    producer = Producer()
    second = tokens(16, 1)
    producer.feed(stored([2], second, parent=1), rank=0)
    producer.feed(stored([2], second, parent=1), rank=1)
    producer.mapper.doubt(0)
    assert producer.mapper.counters.orphans_dropped == 1
    assert producer.mapper.orphan_blocks == 1

    producer.feed(stored([1], ONE), rank=0)
    assert producer.held == dict.fromkeys(keys(ONE), CacheTier.T1)
    producer.feed(stored([1], ONE), rank=1)
    assert producer.held == dict.fromkeys(keys(tokens(0, 2)), CacheTier.T1)


def test_what_nobody_vouches_for_is_not_kept_alive() -> None:
    """An engine that is gone keeps nothing alive, whatever it said last; it may come back."""
    producer = Producer()
    other = tokens(500, 1)
    producer.feed(stored([1], ONE), rank=0)
    producer.feed(stored([1], other), rank=1)
    producer.mapper.vouch(0, is_there=False)
    assert kept_alive(producer) == set(keys(other))
    assert len(list(producer.mapper.live_set(include_doubtful=True))) == 2

    producer.feed(CLEARED, stored([2], ONE), rank=0)
    assert kept_alive(producer) == set(keys(other))
    producer.mapper.vouch(0, is_there=True)
    assert kept_alive(producer) == set(keys(ONE) + keys(other))


def test_what_is_forgotten_fills_no_empty_server() -> None:
    """Others have let it expire; an engine that is back keeps it alive again."""
    producer = Producer()
    other = tokens(500, 1)
    producer.feed(stored([1], ONE), rank=0)
    producer.feed(stored([1], other), rank=1)
    producer.mapper.vouch(0, is_there=False)
    producer.mapper.forget(0)
    ((told,),) = producer.mapper.live_set(include_doubtful=True)
    assert [(told.adapter_id, key) for key in told.keys] == keys(other)
    assert producer.held == dict.fromkeys(keys(ONE) + keys(other), CacheTier.T1)

    producer.mapper.vouch(0, is_there=True)
    assert len(list(producer.mapper.live_set(include_doubtful=True))) == 2
    assert kept_alive(producer) == set(keys(ONE) + keys(other))


@pytest.mark.parametrize("forget", [lambda mapper: mapper.reset(0), EventMapper.start_over])
def test_a_new_life_is_vouched_for_once_somebody_is_there(
    forget: Callable[[EventMapper], list[Operation]],
) -> None:
    """A replay may show a new life after the connection has been lost once more."""
    producer = Producer()
    producer.feed(stored([1], ONE))
    producer.mapper.vouch(0, is_there=False)
    producer.index.apply(forget(producer.mapper))
    producer.feed(stored([1], ONE))
    assert kept_alive(producer) == set()

    producer.mapper.vouch(0, is_there=True)
    assert kept_alive(producer) == set(keys(ONE))


def test_a_socket_vouches_for_the_ranks_named_there() -> None:
    """Their batches come from the engine behind it."""
    router = RankRouter("pod", MapperSettings(), separate_ranks=True)
    for _ in router.steps(batch_of([stored([1], ONE)], rank=3), lambda *_: None, 0, 0):
        continue
    router.vouch(0, is_there=False)
    assert list(router.mapper_of(3).live_set(include_doubtful=False)) == []
    router.vouch(0, is_there=True)
    assert len(list(router.mapper_of(3).live_set(include_doubtful=False))) == 1


def test_a_rank_named_by_an_engine_that_is_gone_is_not_kept_alive() -> None:
    """Its last messages are read after the connection is lost, and may be the first to name it."""
    router = RankRouter("pod", MapperSettings(), separate_ranks=True)

    def feed() -> None:
        for _ in router.steps(batch_of([stored([1], ONE)], rank=3), lambda *_: None, 0, 0):
            continue

    def is_kept_alive() -> bool:
        return bool(list(router.mapper_of(3).live_set(include_doubtful=False)))

    router.vouch(0, is_there=False)
    feed()
    assert not is_kept_alive()
    router.reset(0)
    router.vouch(0, is_there=True)
    feed()
    assert is_kept_alive()


def test_a_rank_named_by_an_engine_that_is_forgotten_is_forgotten() -> None:
    """Its last messages may be read that late; once it is back, all of its ranks are."""
    router = RankRouter("pod", MapperSettings(), separate_ranks=True)
    router.vouch(0, is_there=False)
    router.forget(0)
    for _ in router.steps(batch_of([stored([1], ONE)], rank=3), lambda *_: None, 0, 0):
        continue
    assert list(router.mapper_of(3).live_set(include_doubtful=True)) == []
    router.vouch(0, is_there=True)
    assert len(list(router.mapper_of(3).live_set(include_doubtful=True))) == 1


def test_keys_of_one_block_are_told_at_their_own_tiers() -> None:
    """Another prompt may hold the first of them better; the rest has nobody else to tell it."""
    producer = Producer()
    first, other = tokens(0, 3), [*tokens(0, 1), *tokens(900, 2)]
    producer.feed(stored([1], first, size=48), moved([1], "CPU"), removed([1]))
    producer.feed(stored([2], other, size=48))
    (shared, *rest) = keys(first)
    assert producer.held[shared] == CacheTier.T1
    assert [producer.held[name] for name in rest] == [CacheTier.T2] * 2

    for include_doubtful in (True, False):
        told = {}
        for runs in producer.mapper.live_set(include_doubtful=include_doubtful):
            for run in runs:
                for position, key in enumerate(run.keys):
                    told["", key] = (run.tier, run.first_token_count + 16 * position)
        assert told == producer.index.held
