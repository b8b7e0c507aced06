"""Limits of what a producer remembers, and odd ends of its parts."""

from engine_events import CLEARED, Producer, batch_of, keys, moved, removed, stored, tokens
from engine_payloads import T16, batch, map_store
from msgpack_bytes import array, binary, integers, text

from inferencecache.events import EventMapper, Frame
from inferencecache.events.blocks import Block, Detail, SharedCounts
from inferencecache.events.decode import decode_batch
from inferencecache.events.engine_life import EngineLife
from inferencecache.events.orphans import Orphans
from inferencecache.events.reorder import ReorderBuffer
from inferencecache.settings.producer import DecodeSettings, MapperSettings
from inferencecache.types import CacheTier

T1, T2 = CacheTier.T1, CacheTier.T2
ONE = tokens(0, 1)


def test_shared_counts_do_not_grow_for_ever() -> None:
    """A full table starts over; counts stay right."""
    counts = SharedCounts()
    counts.COUNTS_MAX = 3
    for count in (5, 6, 7, 8, 5, 6):
        assert counts.share(count) == count
        assert counts.held <= 3


def test_children_of_a_page_are_kept_once() -> None:
    """One child needs no set, several are all kept."""
    detail = Detail(tail=b"1234")
    assert list(detail.all_children()) == []
    for child in (7, 7, 8, 7):
        detail.add_child(child, {7, 8})
    assert sorted(detail.all_children()) == [7, 8]


def test_children_that_went_do_not_pile_up() -> None:
    """A page that outlives thousands of its branches remembers those that are there."""
    producer = Producer()
    producer.feed(stored([0], tokens(0, 1)[:8], size=8))
    page = producer.mapper._ranks[0].groups[0].blocks.get(0)
    assert page is not None
    assert page.detail is not None
    for branch in range(1, 5_001):
        child = stored([branch], [branch] * 8, parent=0, size=8)
        producer.mapper.apply(batch_of([child, removed([branch])]), 0)
        assert len(list(page.detail.all_children())) <= 65

    kept = range(10_000, 10_300)
    for branch in kept:
        producer.feed(stored([branch], [branch] * 8, parent=0, size=8))
    assert set(kept) <= set(page.detail.all_children())
    assert len(producer.held) == len(kept)
    producer.feed(removed([0]))
    assert producer.held == {}
    assert producer.mapper.blocks_total == 0


def test_branches_are_looked_through_seldom() -> None:
    """Noting one costs the same however many there are."""
    looks = 0

    class Held:
        def __contains__(self, _: object) -> bool:
            nonlocal looks
            looks += 1
            return True

    detail = Detail(tail=b"1234")
    for child in range(20_000):
        detail.add_child(child, Held())
    assert len(list(detail.all_children())) == 20_000
    assert looks <= 2 * 20_000


def test_block_without_a_boundary_has_no_key() -> None:
    """Before the first boundary there is nothing to hold."""
    block = Block(None, 4, "", 1, None, None)
    assert block.keys == ()
    assert block.tail == b""


def test_groups_of_a_rank_are_bounded() -> None:
    """Further ones are dropped, whatever they are; known ones go on, and a clear makes room."""
    producer = Producer(groups_max=2)
    kinds = ["full_attention", "mamba"]
    for group, kind in enumerate(kinds):
        producer.feed(stored([1], ONE, group_idx=group, kv_cache_spec_kind=kind))
    for group in range(2, 500):
        late = stored([1], tokens(group * 50, 1), group_idx=group, kv_cache_spec_kind=kinds[0])
        producer.mapper.apply(batch_of([late, moved([1], "CPU", group_idx=group + 500)]), 0)
    assert producer.drops() == {"group": 1, "groups": 2 * 498}
    assert producer.held == dict.fromkeys(keys(ONE), T1)

    producer.feed(stored([2], tokens(16, 1), parent=1, group_idx=0))
    assert len(producer.held) == 2
    producer.feed(CLEARED, stored([1], ONE, group_idx=7, kv_cache_spec_kind=kinds[0]))
    assert producer.held == dict.fromkeys(keys(ONE), T1)


def test_adapters_with_blocks_are_bounded_and_others_forgotten() -> None:
    """There is room for another as soon as one has no blocks any more."""
    producer = Producer(lora_name_from_event=True, adapters_max=3)
    for number in range(2_000):
        producer.mapper.apply(
            batch_of([stored([number], ONE, lora_name=f"a{number}"), removed([number])]), 0
        )
    assert producer.drops() == {}
    assert len(producer.mapper._ledger.keys._partitions) <= 3
    assert len(producer.mapper._ranks[0].groups[0].blocks._stretches) <= 256

    named = [stored([number], ONE, lora_name=f"b{number}") for number in range(4)]
    producer.feed(*named)
    assert set(producer.held) == {key for number in range(3) for key in keys(ONE, f"b{number}")}
    assert producer.drops() == {"adapters": 1}
    producer.feed(removed([1]), named[3])
    assert set(producer.held) == {key for number in (0, 2, 3) for key in keys(ONE, f"b{number}")}


def test_routes_are_bounded_and_follow_what_is_learnt() -> None:
    """Many kinds of stores do not pile up, and a larger block size ends old routes."""
    producer = Producer(lora_name_from_event=True)
    for number in range(600):
        producer.mapper.apply(batch_of([stored([number], ONE, lora_name=f"a{number}")]), 0)
    assert len(producer.mapper._ranks[0].routes) <= 256

    larger = [stored([1_000], tokens(0, 4), size=64), stored([1_001], tokens(64, 1))]
    producer.mapper.apply(batch_of(larger), 0)
    assert producer.drops() == {"partial_block": 1}


def test_parent_with_an_unfinished_page_refuses_larger_blocks() -> None:
    """Blocks that would lie across a boundary have no place."""
    producer = Producer()
    producer.feed(stored([1], [1, 2, 3, 4], size=4), stored([2], ONE, parent=1, size=16))

    assert producer.drops() == {"block_size": 1}


def test_rebound_pages_and_pieces() -> None:
    """A page or large block that comes to mean other content is replaced, with all it was in."""
    producer = Producer()
    producer.feed(stored([1, 2], ONE, size=8), stored([1], tokens(50, 1)[:8], size=8))
    assert producer.held == {}

    large = Producer()
    large.feed(stored([1], tokens(0, 2), size=32), stored([1], tokens(90, 2), size=32))
    assert large.held == dict.fromkeys(keys(tokens(90, 2)), T1)


def test_cascade_meets_pages_that_went_before() -> None:
    """Removals in any order leave nothing behind."""
    producer = Producer()
    producer.feed(stored([1, 2, 3, 4], ONE, size=4))
    producer.feed(removed([3]), removed([2, 1, 4]))

    assert producer.held == {}
    assert producer.mapper.blocks_total == 0


def test_moving_a_known_block_to_a_second_host_medium() -> None:
    """T2 stays T2 while any host copy is left."""
    producer = Producer()
    producer.feed(stored([1], ONE), moved([1], "CPU"), moved([1], "DISK"), removed([1]))
    producer.feed(removed([1], "CPU"))
    assert producer.held == dict.fromkeys(keys(ONE), T2)

    producer.feed(removed([1], "DISK"))
    assert producer.held == {}


def test_orphans_of_one_rank_are_cleared_alone() -> None:
    """Waiting stores belong to their rank; a copy is removed once."""
    orphans = Orphans(blocks_max=10, bytes_max=1_000, hold_ns=10)
    orphans.hold(0, stored([2], ONE, parent=1), 0)
    orphans.hold(1, stored([2], ONE, parent=1), 0)
    orphans.hold(1, stored([3], ONE, parent=9), 5)
    assert orphans.pop_child(0, 0, 1) is not None
    assert orphans.pop_child(0, 0, 1) is None
    assert not list(orphans.clear(0))
    assert orphans.blocks_total == 2
    assert not orphans.note_removal(0, removed([2]), 2)
    assert orphans.note_removal(1, removed([2]), 2)
    assert not orphans.note_removal(1, removed([2]), 2)
    assert orphans.expire(10) == 1
    orphans.clear(1)
    assert orphans.blocks_total == orphans.bytes_total == 0
    assert orphans.expire(100) == 0


def test_waiting_stores_are_bounded_in_bytes() -> None:
    """Blocks of 65,536 tokens, and long names, are large: 65,536 of them would take 17 GB."""
    orphans = Orphans(blocks_max=1_000, bytes_max=250, hold_ns=10)
    large = stored([1], tokens(0, 1), parent=9, medium="")
    assert len(large.packed_tokens) == 64
    assert [orphans.hold(0, large, now_ns) for now_ns in range(5)] == [0, 0, 0, 1, 1]
    assert (orphans.blocks_total, orphans.bytes_total) == (3, 192)

    named = stored([2], tokens(0, 1), parent=9, lora_name="n" * 30, medium="m")
    assert orphans.hold(1, named, 5) == 3
    assert (orphans.blocks_total, orphans.bytes_total) == (1, 64 + 31 * 4)
    assert orphans.hold(1, stored([3], tokens(0, 4), parent=9, medium=""), 6) == 1
    assert (orphans.blocks_total, orphans.bytes_total) == (1, 64 + 31 * 4)
    assert orphans.pop_child(1, 0, 9) is not None
    assert (orphans.blocks_total, orphans.bytes_total) == (0, 0)


def test_the_bound_in_bytes_is_a_setting() -> None:
    """What it drops is counted with what had no parent in time."""
    producer = Producer(orphan_bytes_max=100)
    producer.feed(stored([2], ONE, parent=1), stored([3], ONE, parent=2))
    assert producer.mapper.orphan_blocks == 1
    assert producer.mapper.counters.orphans_dropped == 1


def test_two_waiting_copies_lose_one_each() -> None:
    """Each removal takes one of the copies announced while waiting."""
    producer = Producer()
    child = stored([2], tokens(16, 1), parent=1)
    producer.feed(child, child, removed([2]))
    producer.feed(stored([1], ONE))
    assert producer.held == dict.fromkeys(keys(tokens(0, 2)), T1)

    producer.feed(child, removed([2]), removed([2]))
    assert producer.held == dict.fromkeys(keys(ONE), T1)


def test_life_keeps_a_bounded_record() -> None:
    """The oldest marks go; the first message is always remembered."""
    life = EngineLife(16_384)
    for number in range(16_400):
        life.note(Frame(number, b"x"))
    assert life.recalls(Frame(0, b"x")) is True
    assert life.recalls(Frame(3, b"x")) is None
    assert life.recalls(Frame(16_399, b"xy")) is False


def test_reorder_buffer_reports_its_lowest_number() -> None:
    """Numbers that were taken do not count any more."""
    buffer = ReorderBuffer(batches_max=9, bytes_max=99)
    for number in (5, 3, 9):
        assert buffer.add(Frame(number, b"x"), is_live=True)
    assert buffer.add(Frame(3, b"other"), is_live=False)
    assert buffer.get(3) == Frame(3, b"x")
    buffer.take(3)
    assert buffer.lowest() == 5
    buffer.clear()
    assert buffer.lowest() is None


def test_text_tokens_with_odd_fields_are_faults() -> None:
    """The lenient reading for text tokens is strict about everything else."""
    mixed = array([text("x")] * 16)
    odd = map_store([1], T16, token_ids=mixed, lora_id=text("7"))
    parent = map_store([1], T16, token_ids=mixed, parent_block_hash=binary(bytes(8)))
    many = map_store([1, 2], T16, token_ids=mixed, block_hashes=integers([1, 2]))
    read = decode_batch(batch(odd, parent, many), DecodeSettings())

    assert len(read.events) == 1
    assert sum(read.faults.values()) == 2


def test_faults_are_counted_and_repeat() -> None:
    """The mapper adds up what decoding found."""
    mapper = EventMapper(MapperSettings())
    for _ in range(2):
        mapper.apply(decode_batch(batch(map_store([1], T16, size=-1)), DecodeSettings()), 0)
    assert mapper.counters.faults == {"block_size": 2}
    for size in range(17, 200):
        mapper.counters.refused_block_size(size)
    assert len(mapper.counters.refused_block_sizes) == 64


def test_placeholder_on_the_gpu_brings_a_block_back() -> None:
    """A store without tokens may also name the GPU."""
    producer = Producer()
    producer.feed(stored([1], ONE), moved([1], "CPU"), removed([1]), moved([1], "GPU"))

    assert producer.held == dict.fromkeys(keys(ONE), T1)


def test_orphans_taken_before_the_limit_make_no_noise() -> None:
    """Stores that were placed are skipped when the oldest have to make room."""
    producer = Producer(orphan_blocks_max=1)
    producer.feed(stored([2], tokens(16, 1), parent=1))
    producer.feed(stored([1], ONE))
    producer.feed(stored([11], ONE, parent=10), stored([21], ONE, parent=20))

    assert producer.mapper.counters.orphans_dropped == 1
    assert producer.mapper.keys_total == 2


def test_key_shared_within_a_run_is_not_fresh() -> None:
    """A run that repeats a held key may not be cancelled unsent."""
    producer = Producer()
    producer.feed(stored([1], ONE))
    (run,) = producer.mapper.apply(batch_of([stored([8, 9], tokens(0, 2))]), 0)

    assert not getattr(run, "is_fresh", True)


def test_no_stores_no_blocks_of_an_unfinished_multiple() -> None:
    """Tokens after the last whole engine block are left out."""
    producer = Producer()
    producer.feed(stored([1], tokens(0, 3), size=32))

    assert producer.held == dict.fromkeys(keys(tokens(0, 2)), T1)


def test_clear_is_quick_and_freed_in_slices() -> None:
    """A clear sets blocks aside; batches and idle time free them."""
    producer = Producer()
    producer.feed(stored(list(range(100)), tokens(0, 100)))
    steps = producer.mapper.live_set(include_doubtful=True)
    producer.feed(stored([500], tokens(9_000, 1)))
    assert [len(run.keys) for run in next(steps)] == [100]
    producer.feed(CLEARED)

    assert list(steps) == []
    assert producer.mapper.blocks_total == 0
    assert producer.mapper.reclaim(150)
    assert not producer.mapper.reclaim(10_000)


def test_unreadable_extra_keys_cost_their_event() -> None:
    """A text that is no text is that event's fault alone."""
    bad = map_store([1], T16, extra_keys=array([b"\xa2\xff\xfe"]))
    read = decode_batch(batch(bad, map_store([2], T16)), DecodeSettings())

    assert len(read.events) == 1
    assert read.faults == {"extra_keys": 1}


def test_host_store_in_an_unknown_medium_is_counted_each_time() -> None:
    """A medium nobody knows is T2 and stays visible in the counters."""
    producer = Producer()
    producer.feed(stored([1], ONE))
    for number in (2, 3):
        producer.feed(stored([number], tokens(16 * number, 1), parent=1, medium="NVME"))

    assert producer.mapper.counters.unknown_mediums == 2
    assert sorted(producer.held.values()) == [T1, T2, T2]
