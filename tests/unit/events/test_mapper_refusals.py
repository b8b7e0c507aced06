"""Adapters, foreign content and block sizes: what is not indexed, and why."""

import pytest
from engine_events import Producer, batch_of, keys, moved, removed, stored, tokens

from inferencecache.errors import ConfigError
from inferencecache.events import Evict, StoreRun
from inferencecache.events.adapters import parse_adapter_names
from inferencecache.types import CacheTier

T1, T2 = CacheTier.T1, CacheTier.T2
ONE = tokens(0, 1)


def test_mapped_adapter_goes_to_its_partition() -> None:
    """The map's name is the partition, whatever the event calls the adapter."""
    producer = Producer(lora_adapter_names="1=sql-lora")
    producer.feed(stored([1], ONE, lora_id=1, lora_name="/models/other"))

    assert producer.held == dict.fromkeys(keys(ONE, "sql-lora"), T1)


def test_unmapped_adapter_is_dropped_and_counted_by_number() -> None:
    """An engine's number alone is never a partition."""
    producer = Producer()
    producer.feed(stored([1], ONE, lora_id=7), stored([2], ONE, lora_id=7, lora_name="x"))
    producer.feed(stored([3], ONE, lora_name="only-a-name"))

    assert producer.held == {}
    assert producer.drops() == {"adapter": 3}
    assert producer.mapper.counters.unmapped_adapters == {"7": 2}
    assert producer.mapper.counters.unnumbered_adapters == {"only-a-name": 1}


def test_adapter_names_are_counted_within_bounds() -> None:
    """Neither many names nor a long one takes more room than a few short ones."""
    producer = Producer()
    for number in range(100):
        producer.feed(stored([number], ONE, lora_name=f"{number:03}" + "x" * 10_000))

    assert list(producer.mapper.counters.unnumbered_adapters) == [
        f"{number:03}" + "x" * 125 for number in range(64)
    ]


def test_name_from_the_event_serves_when_allowed() -> None:
    """With the option a name replaces a missing map entry; the map still wins."""
    producer = Producer(lora_name_from_event=True, lora_adapter_names="1=mapped")
    producer.feed(
        stored([1], ONE, lora_id=1, lora_name="a"),
        stored([2], ONE, lora_id=2, lora_name="b"),
        stored([3], ONE, lora_name="c"),
        stored([4], ONE, lora_id=4),
    )

    assert {name for name, _ in producer.held} == {"mapped", "b", "c"}
    assert producer.drops() == {"adapter": 1}


def test_adapter_map_text() -> None:
    """Blanks and a trailing comma are fine, names may contain an equals sign."""
    assert parse_adapter_names(" 1 = sql , 2=a=b,-3=c,, ") == {1: "sql", 2: "a=b", -3: "c"}
    assert parse_adapter_names("") == {}
    for wrong in ("x", "a=b", "1=", "=b", "1=a,1=b", "1.5=a", "\u0661=a", "-=a"):
        with pytest.raises(ConfigError):
            parse_adapter_names(wrong)


def test_base_eviction_puts_other_adapters_keys_back() -> None:
    """The index takes a base eviction for every adapter's, so theirs are stored again after it."""
    producer = Producer(lora_adapter_names="1=sql")
    producer.feed(stored([1], ONE), stored([2], ONE, lora_id=1))
    operations = producer.mapper.apply(batch_of([removed([1])]), 0)
    producer.index.apply(operations)
    producer.check()

    assert [type(operation) for operation in operations] == [Evict, StoreRun]
    assert producer.held == dict.fromkeys(keys(ONE, "sql"), T1)
    assert producer.index.held[keys(ONE, "sql")[0]] == (T1, 16)


def test_adapter_eviction_is_narrow() -> None:
    """An adapter's eviction names its partition."""
    producer = Producer(lora_adapter_names="1=sql")
    producer.feed(stored([1], ONE), stored([2], ONE, lora_id=1))
    producer.feed(removed([2]))

    assert producer.held == dict.fromkeys(keys(ONE), T1)


def test_child_of_another_adapters_block_is_dropped() -> None:
    """A chain lives in one partition."""
    producer = Producer(lora_adapter_names="1=sql")
    producer.feed(stored([1], ONE), stored([2], ONE, parent=1, lora_id=1))

    assert producer.drops() == {"parent_adapter": 1}


def test_foreign_content_is_never_indexed_nor_what_stands_below() -> None:
    """A salted or pictured block and all its descendants have no keys; siblings do."""
    producer = Producer()
    producer.feed(
        stored([1, 2, 3], tokens(0, 3), opaque_from=1),
        stored([4], tokens(48, 1), parent=3),
        stored([5, 6], tokens(64, 2), parent=4),
        stored([7], tokens(16, 1), parent=1),
    )
    assert producer.held == dict.fromkeys(keys(tokens(0, 2)), T1)
    assert producer.mapper.counters.opaque_blocks == 5

    producer.feed(removed([2, 3, 4, 5, 6]))
    assert producer.held == dict.fromkeys(keys(tokens(0, 2)), T1)
    assert producer.mapper.counters.unknown_removals == 0


def test_block_that_turns_out_opaque_loses_its_key() -> None:
    """The later, stricter word counts."""
    producer = Producer()
    producer.feed(
        stored([1], ONE), stored([1], ONE, opaque_from=0), stored([1], ONE, opaque_from=0)
    )

    assert producer.held == {}


def test_larger_engine_blocks_are_cut() -> None:
    """Four keys hang on one engine block of 64, and go with it."""
    producer = Producer()
    producer.feed(stored([1, 2], tokens(0, 8), size=64))
    assert producer.held == dict.fromkeys(keys(tokens(0, 8)), T1)
    assert [count for _, count in producer.index.held.values()] == list(range(16, 129, 16))

    producer.feed(stored([2], tokens(64, 4), size=64, parent=1, medium="CPU"), removed([2]))
    expected = dict.fromkeys(keys(tokens(0, 8)), T1) | dict.fromkeys(keys(tokens(0, 8))[4:], T2)
    assert producer.held == expected
    assert producer.index.held[keys(tokens(0, 8))[5]] == (T2, 96)

    producer.feed(removed([1]))
    assert producer.held == dict.fromkeys(keys(tokens(0, 8))[4:], T2)


def test_size_that_does_not_divide_is_refused_and_named_once() -> None:
    """A block of 24 in an index of 16 gives nothing; the log needs each size once."""
    producer = Producer()
    for _ in range(3):
        producer.feed(stored([1], list(range(24)), size=24))

    assert producer.held == {}
    assert producer.drops() == {"block_size": 3}
    assert producer.mapper.counters.refused_block_sizes == {24: 3}
    assert producer.mapper.counters.refused_block_size(40)
    assert not producer.mapper.counters.refused_block_size(24)


def test_partial_block_is_refused_and_its_removal_hits_nothing() -> None:
    """A smaller store in a group of larger blocks is not tracked."""
    producer = Producer()
    producer.feed(
        stored([1], tokens(0, 4), size=64),
        stored([8], tokens(64, 1), size=16, parent=1),
        removed([8]),
        stored([2], tokens(64, 4), size=64, parent=1),
    )

    assert producer.drops() == {"partial_block": 1}
    assert producer.mapper.counters.smaller_block_sizes == {(16, 64): 1}
    assert producer.held == dict.fromkeys(keys(tokens(0, 8)), T1)


def test_chunk_hashes_of_a_connector_are_ignored() -> None:
    """Chunks of another size in another medium are not blocks of the engine."""
    producer = Producer()
    producer.feed(stored([1], ONE), stored([900], tokens(0, 16), size=256, medium="cpu"))

    assert producer.held == dict.fromkeys(keys(ONE), T1)
    assert producer.drops() == {"unknown_block": 1}


def test_host_only_store_of_known_size_is_t2() -> None:
    """A block fetched to the host alone counts as T2 once the block size is known."""
    producer = Producer()
    producer.feed(stored([1], ONE), stored([2, 3], tokens(16, 2), parent=1, medium="CPU_PINNED"))
    assert [producer.held[key] for key in keys(tokens(0, 3))] == [T1, T2, T2]

    producer.feed(stored([3], tokens(32, 1), parent=2))
    assert [producer.held[key] for key in keys(tokens(0, 3))] == [T1, T2, T1]

    producer.feed(stored([1, 2, 3], tokens(0, 3), medium="CPU_PINNED"))
    assert [producer.held[key] for key in keys(tokens(0, 3))] == [T1, T2, T1]


def test_stores_without_hashes_are_ignored() -> None:
    """Nothing can be said about nothing."""
    producer = Producer()
    producer.feed(stored([], tokens(0, 1)), moved([], "CPU"))

    assert producer.drops() == {"empty": 2}
