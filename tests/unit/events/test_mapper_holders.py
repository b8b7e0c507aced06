"""Copies, mediums, groups and ranks: one removal does not erase what is still there."""

from itertools import chain

import pytest
from engine_events import CLEARED, Producer, batch_of, keys, moved, removed, stored, tokens

from inferencecache.events import BlockRemoved, Clear, EventBatch, Evict, Operation, RankRouter
from inferencecache.settings.producer import MapperSettings
from inferencecache.types import CacheTier

T1, T2 = CacheTier.T1, CacheTier.T2
ONE = tokens(0, 1)
KEY = keys(ONE)[0]


def test_second_copy_keeps_the_key() -> None:
    """Two physical copies need two removals."""
    producer = Producer()
    producer.feed(stored([1], ONE), stored([1], ONE))
    producer.feed(removed([1]))
    assert producer.held == {KEY: T1}

    producer.feed(removed([1]))
    assert producer.held == {}


def test_copies_saturate() -> None:
    """A re-announcer does not count for ever; a stale count is not kept alive."""
    producer = Producer(copies_max=3)
    for _ in range(10):
        producer.feed(stored([1], ONE))

    assert producer.mapper.counters.copies_saturated == 7
    assert list(producer.mapper.live_set(include_doubtful=False)) == []
    assert len(list(producer.mapper.live_set(include_doubtful=True))) == 1

    producer.feed(removed([1]), removed([1]), removed([1]))
    assert producer.held == {}


def test_tier_follows_the_set_of_mediums() -> None:
    """GPU and CPU is T1, CPU alone T2, nothing is gone."""
    producer = Producer()
    producer.feed(stored([1], ONE))
    producer.feed(stored([1], ONE, medium="CPU"))
    assert producer.held == {KEY: T1}

    producer.feed(removed([1], "GPU"))
    assert producer.held == {KEY: T2}

    producer.feed(stored([1], ONE))
    assert producer.held == {KEY: T1}

    producer.feed(removed([1], "GPU"), removed([1], "CPU"))
    assert producer.held == {}


def test_keys_are_counted_by_their_best_tier() -> None:
    """On the GPU T1, elsewhere only T2; whichever way a key came there."""
    producer = Producer()
    first, other = tokens(1, 3), tokens(900, 2)
    steps = [
        ([stored([1, 2, 3], first)], (3, 0)),
        ([moved([1, 2], "CPU"), removed([1])], (2, 1)),
        ([stored([7, 8], other, medium="DISK")], (2, 3)),
        ([stored([9], other[:16])], (3, 2)),
        ([stored([8], other[16:], parent=7)], (4, 1)),
        ([removed([9]), removed([2]), removed([3])], (1, 3)),
        ([CLEARED], (0, 0)),
    ]
    for events, (t1, t2) in steps:
        producer.feed(*events)

        assert producer.mapper.keys_by_tier() == {CacheTier.T1: t1, CacheTier.T2: t2}


def test_host_removal_while_on_the_gpu_changes_nothing() -> None:
    """A copy that is loaded back keeps its tier when the host drops it."""
    producer = Producer()
    producer.feed(stored([1], ONE), moved([1], "CPU_PINNED"), removed([1], "CPU_PINNED"))

    assert producer.held == {KEY: T1}


@pytest.mark.parametrize(
    "medium", ["CPU", "cpu", "CPU_PINNED", "STORAGE", "DISK", "FS", "OBJ", "EXTERNAL", "NVME"]
)
def test_placeholder_moves_known_blocks_only(medium: str) -> None:
    """A store without tokens is a tier update; an unknown hash is ignored."""
    producer = Producer()
    producer.feed(moved([1], medium))
    assert producer.held == {}
    assert producer.drops() == {"unknown_block": 1}

    producer.feed(stored([1], ONE), moved([1], medium))
    assert producer.held == {KEY: T1}

    producer.feed(removed([1]))
    assert producer.held == {KEY: T2}
    assert producer.mapper.counters.unknown_mediums == (2 if medium == "NVME" else 0)


def test_removal_from_a_medium_without_a_copy_is_ignored() -> None:
    """Only what was announced there can leave."""
    producer = Producer()
    producer.feed(stored([1], ONE), removed([1], "CPU"))

    assert producer.held == {KEY: T1}
    assert producer.mapper.counters.unknown_removals == 1


def test_gpu_removal_without_tier_news_evicts() -> None:
    """Without evidence of another tier a block that left the GPU is gone."""
    producer = Producer()
    producer.feed(stored([1], ONE), removed([1]))

    assert producer.held == {}


def test_silent_offload_turns_removals_into_t2() -> None:
    """With the flag a removed block stays as T2, can have children, and returns to T1."""
    producer = Producer(infer_offload=True)
    producer.feed(stored([1], ONE), removed([1]))
    assert producer.held == {KEY: T2}

    producer.feed(stored([2], tokens(16, 1), parent=1))
    both = keys(tokens(0, 2))
    assert producer.held == {both[0]: T2, both[1]: T1}
    assert len(list(producer.mapper.live_set(include_doubtful=False))) == 1

    producer.feed(stored([1], ONE))
    assert producer.held == dict.fromkeys(both, T1)


def test_silent_offload_is_bounded_and_yields_to_evidence() -> None:
    """The oldest assumed blocks go first; announced tiers end the assuming."""
    producer = Producer(infer_offload=True, offloaded_blocks_max=2)
    for position in range(4):
        producer.feed(stored([position], tokens(position * 100, 1)), removed([position]))
    assert len(producer.held) == 2

    producer.feed(stored([9], tokens(900, 1)), moved([9], "CPU"), removed([9]))
    assert producer.held[keys(tokens(900, 1))[0]] == T2

    producer.feed(removed([9], "CPU"), stored([8], tokens(800, 1)), removed([8]))
    assert keys(tokens(800, 1))[0] not in producer.held


def test_key_with_several_hashes_goes_with_the_last() -> None:
    """Look-ahead hashes of equal tokens hold one key together."""
    producer = Producer()
    producer.feed(stored([1], ONE), stored([2], ONE))
    producer.feed(removed([1]))
    assert producer.held == {KEY: T1}

    producer.feed(removed([2]))
    assert producer.held == {}


def test_groups_hold_a_key_together() -> None:
    """The same number in two prefix groups is two blocks."""
    producer = Producer()
    kind = "full_attention"
    producer.feed(
        stored([1], ONE, group_idx=0, kv_cache_spec_kind=kind),
        stored([1], ONE, group_idx=1, kv_cache_spec_kind=kind),
        removed([1], group_idx=1),
    )
    assert producer.held == {KEY: T1}

    producer.feed(removed([1], group_idx=0))
    assert producer.held == {}


@pytest.mark.parametrize(
    ("kind", "group_idx", "is_indexed"),
    [
        ("", 0, True),
        ("", 1, False),
        ("full_attention", 3, True),
        ("mla_attention", 0, True),
        ("sink_full_attention", 1, True),
        ("sliding_window", 0, False),
        ("sliding_window_mla", 0, False),
        ("chunked_local_attention", 0, False),
        ("mamba", 1, False),
        ("cross_attention", 0, False),
        ("encoder_only_attention", 0, False),
        ("unknown", 0, False),
    ],
)
def test_only_prefix_groups_are_indexed(kind: str, group_idx: int, *, is_indexed: bool) -> None:
    """Kinds that serve whole prefixes count; without a kind only group 0 does."""
    producer = Producer()
    producer.feed(stored([1], ONE, group_idx=group_idx, kv_cache_spec_kind=kind))

    assert bool(producer.held) == is_indexed
    assert producer.drops() == ({} if is_indexed else {"group": 1})


def test_removal_in_a_window_group_does_not_touch_the_prefix_group() -> None:
    """Equal numbers in a sliding-window group are other blocks."""
    producer = Producer()
    producer.feed(
        stored([1], ONE, group_idx=0, kv_cache_spec_kind="full_attention"),
        stored([1], ONE, group_idx=1, kv_cache_spec_kind="sliding_window"),
        removed([1], group_idx=1),
    )

    assert producer.held == {KEY: T1}


def test_kind_is_learnt_for_later_stores_of_the_group() -> None:
    """A store without a kind follows what the group said before."""
    producer = Producer()
    producer.feed(
        stored([1], ONE, group_idx=2, kv_cache_spec_kind="full_attention"),
        stored([2], tokens(16, 1), parent=1, group_idx=2),
    )
    assert len(producer.held) == 2

    producer.feed(stored([3], ONE, group_idx=2, kv_cache_spec_kind="mamba"))
    assert producer.held == {}


def test_remote_blocks_are_not_credited() -> None:
    """A shared store proves nothing about this replica, in stores or removals."""
    producer = Producer()
    producer.feed(stored([1], ONE, is_remote=True))
    assert producer.held == {}

    producer.feed(stored([1], ONE), BlockRemoved(block_hashes=[1], is_remote=True))
    assert producer.held == {KEY: T1}
    assert producer.drops() == {"remote": 1}


def test_clear_of_one_rank_leaves_the_others_keys() -> None:
    """On a shared replica a rank's clear becomes evictions of what it alone held."""
    producer = Producer()
    producer.feed(stored([1], ONE), stored([2], tokens(50, 1)), rank=0)
    producer.feed(stored([1], ONE), stored([3], tokens(90, 1)), rank=3)
    operations = producer.mapper.apply(batch_of([CLEARED], rank=3), 0)
    producer.index.apply(operations)
    producer.check()

    assert [type(operation) for operation in operations] == [Evict]
    assert set(producer.held) == {KEY, keys(tokens(50, 1))[0]}
    assert [type(found) for found in producer.mapper.reset(0)] == [Clear]
    assert producer.mapper.held_keys() == {}


def test_rank_of_the_batch_wins_and_is_counted() -> None:
    """A batch of another rank goes to that rank's name space."""
    producer = Producer()
    producer.mapper.apply(batch_of([stored([1], ONE)], rank=2), 0, source_rank=0)
    producer.mapper.apply(batch_of([removed([1])], rank=None), 0, source_rank=0)

    assert producer.mapper.held_keys() == {KEY: T1}
    assert producer.mapper.counters.rank_mismatches == 1


def routed(
    router: RankRouter, batch: EventBatch, now_ns: int, source_rank: int = 0
) -> list[tuple[str, list[Operation]]]:
    """Return what a router tells of a batch, step by step."""
    told: list[tuple[str, list[Operation]]] = []

    def emit(replica_id: str, operations: list[Operation]) -> None:
        told.append((replica_id, operations))

    for _ in router.steps(batch, emit, now_ns, source_rank):
        continue
    return told


def test_ranks_as_replicas_of_their_own() -> None:
    """Separate ranks have separate names, clears and bounds."""
    router = RankRouter("pod", MapperSettings(ranks_max=2), separate_ranks=True)
    assert routed(router, batch_of([stored([1], ONE)], rank=0), 0)[0][0] == "pod/0"
    assert routed(router, batch_of([stored([1], ONE)], rank=3), 0, source_rank=3)[0][0] == "pod/3"
    ((replica_id, operations),) = router.reset(3)

    assert replica_id == "pod/3"
    assert [type(operation) for operation in operations] == [Clear]
    assert router.mapper_of(0).held_keys() == {KEY: T1}
    assert routed(router, batch_of([stored([1], ONE)], rank=9), 0) == []
    assert router.refused_ranks == 1
    assert [name for name, _ in router.replicas()] == ["pod/0", "pod/3"]


def test_ranks_on_one_replica_are_bounded() -> None:
    """More ranks than allowed are refused and counted."""
    router = RankRouter("pod", MapperSettings(ranks_max=1), separate_ranks=False)
    routed(router, batch_of([stored([1], ONE)], rank=0), 0)

    assert routed(router, batch_of([stored([1], ONE)], rank=1), 0) == []
    assert router.mapper_of(0).counters.drops == {"ranks": 1}


@pytest.mark.parametrize("separate_ranks", [True, False])
def test_ranks_that_are_refused_leave_nothing(*, separate_ranks: bool) -> None:
    """Each batch may name another one, for as long as the engine runs."""
    router = RankRouter("pod", MapperSettings(ranks_max=2), separate_ranks=separate_ranks)
    for rank in range(100):
        routed(router, batch_of([stored([1], ONE)], rank=rank), 0, source_rank=0)

    assert router._named == {0: {1}}
    router.reset(0)
    assert router.mapper_of(1).held_keys() == {}


@pytest.mark.parametrize("separate_ranks", [True, False])
@pytest.mark.parametrize("forget", ["reset", "start_over"])
def test_what_becomes_of_a_socket_becomes_of_the_ranks_named_there(
    forget: str, *, separate_ranks: bool
) -> None:
    """An engine that starts anew takes along what its batches put down to another rank."""
    router = RankRouter("pod", MapperSettings(ranks_max=2), separate_ranks=separate_ranks)
    routed(router, batch_of([stored([1], ONE)], rank=3), 0, source_rank=0)
    assert router.mapper_of(3).held_keys() == {KEY: T1}

    told = getattr(router, forget)(0)

    assert told[-1] == (router.replica_of(3), [Clear()])
    assert router.mapper_of(3).held_keys() == {}


def test_lost_messages_cast_doubt_on_the_ranks_named_there() -> None:
    """What may be gone is not reported again, whatever rank it was put down to."""
    router = RankRouter("pod", MapperSettings(), separate_ranks=False)
    routed(router, batch_of([stored([1], ONE)], rank=3), 0, source_rank=0)
    assert list(router.mapper_of(3).live_set(include_doubtful=False))
    router.doubt(0)
    assert list(router.mapper_of(3).live_set(include_doubtful=False)) == []


def test_live_set_is_runs_along_prompts() -> None:
    """What is reported again carries whole-prompt counts and skips what went meanwhile."""
    producer = Producer()
    producer.feed(
        stored([1, 2], tokens(0, 2)),
        stored([3], tokens(32, 1), parent=2),
        stored([7], tokens(700, 1), parent=1),
        stored([8], tokens(800, 1)),
    )
    steps = producer.mapper.live_set(include_doubtful=False)
    (first,) = next(steps)
    producer.feed(removed([7]))
    rest = list(chain.from_iterable(steps))

    assert [len(run.keys) for run in (first, *rest)] == [3, 1]
    assert [run.first_token_count for run in (first, *rest)] == [16, 16]
    assert rest[0].keys == [keys(tokens(800, 1))[0][1]]


def told_again(producer: Producer, *, include_doubtful: bool) -> set[int]:
    """Return the keys of the live set."""
    steps = producer.mapper.live_set(include_doubtful=include_doubtful)
    return {key for runs in steps for run in runs for key in run.keys}


def test_doubt_stops_the_slow_cycle_for_what_came_before() -> None:
    """Blocks that may be gone unnoticed are not kept alive; those that come later are."""
    producer = Producer()
    ((_, first), (_, second), (_, third)) = keys(tokens(0, 3))
    producer.feed(stored([1], ONE))
    producer.mapper.doubt()
    assert told_again(producer, include_doubtful=False) == set()
    assert told_again(producer, include_doubtful=True) == {first}

    producer.feed(stored([1], ONE), stored([2, 3], tokens(16, 2), parent=1))
    assert told_again(producer, include_doubtful=False) == {second, third}
    producer.mapper.doubt()
    producer.mapper.doubt()
    producer.feed(removed([2]), removed([1]), removed([1]))
    assert told_again(producer, include_doubtful=False) == set()
    assert told_again(producer, include_doubtful=True) == {third}

    producer.feed(CLEARED, stored([1], ONE))
    assert told_again(producer, include_doubtful=False) == {first}


def test_doubt_about_one_rank_leaves_the_others_alone() -> None:
    """Ranks publish apart from each other."""
    producer = Producer()
    producer.feed(stored([1], ONE), rank=0)
    producer.feed(stored([1], tokens(50, 1)), rank=1)
    producer.mapper.doubt(0)
    assert told_again(producer, include_doubtful=False) == {keys(tokens(50, 1))[0][1]}


def test_clock_skew_is_counted_and_nothing_else() -> None:
    """Times of engines are compared, never used for entries."""
    producer = Producer(clock_skew_max_ns=100)
    for ts_ns in (0, 1_000, 1_050, 5_000):
        producer.mapper.note_skew(batch_of([], ts_ns=ts_ns), 1_000)

    assert producer.mapper.counters.clock_skews == 1
