"""Public reports about vLLM's events: what broke for others does not break here."""

import json

import pytest
from engine_events import Producer
from field_events import EVENTS, expected_keys, payload, play

from inferencecache.events import Frame, SequenceTracker, decode_batch, replay_frame
from inferencecache.settings.producer import DecodeSettings, SequenceSettings
from inferencecache.types import CacheTier

T1, T2 = CacheTier.T1, CacheTier.T2
T16 = dict.fromkeys(expected_keys("T16@16"), T1)


@pytest.mark.parametrize("name", ["vllm_map_blockstored", "vllm_array_int_blockstored"])
def test_map_and_array_events_give_one_key(name: str) -> None:
    """After an engine upgrade the same block has the same key, and no decode fault is counted."""
    producer = Producer()
    play(producer, name)

    assert producer.held == T16
    assert list(producer.index.held.values()) == [(T1, 16)]
    assert producer.mapper.counters.faults == {}


def test_unknown_event_kind_costs_only_itself() -> None:
    """Store and removal around it are applied in order."""
    producer = Producer()
    play(producer, "vllm_mixed_batch_unknown_event")

    assert producer.held == {}
    assert producer.mapper.counters.faults == {"unknown_type": 1}
    assert producer.mapper.counters.stored_blocks == 1
    assert producer.mapper.counters.removed_blocks == 1


def test_adapter_name_in_extra_keys_is_no_image() -> None:
    """The block goes to the configured adapter's partition, never to the base model's."""
    producer = Producer(lora_adapter_names="117=adapter-116", block_size_tokens=64)
    play(producer, "vllm_lora_map")
    assert producer.held == dict.fromkeys(expected_keys("seq(64)@64", "adapter-116"), T1)

    unmapped = Producer(block_size_tokens=64)
    play(unmapped, "vllm_lora_map")
    assert unmapped.held == {}
    assert unmapped.mapper.counters.unmapped_adapters == {"117": 1}


def test_engine_block_of_64_is_four_keys_in_an_index_of_16() -> None:
    """Sizes on the wire need not be the index's."""
    producer = Producer(lora_adapter_names="117=adapter-116")
    play(producer, "vllm_lora_map")

    assert producer.held == dict.fromkeys(expected_keys("seq(64)@16", "adapter-116"), T1)


@pytest.mark.parametrize(
    ("name", "blocks"), [("vllm_multimodal_extra_keys", 2), ("vllm_cache_salt_extra_keys", 1)]
)
def test_pictures_and_salts_are_never_indexed(name: str, blocks: int) -> None:
    """Their tokens do not tell one prompt from another."""
    producer = Producer()
    play(producer, name)

    assert producer.held == {}
    assert producer.mapper.counters.opaque_blocks == blocks


def test_skipped_blocks_are_dropped_not_guessed() -> None:
    """Two blocks of tokens and one hash: nothing is indexed, the next event is."""
    producer = Producer()
    play(producer, "vllm_mamba_align_gap", "vllm_map_blockstored")

    assert producer.held == T16
    assert producer.mapper.counters.faults == {"token_count": 1}


def test_tiers_are_removed_one_by_one() -> None:
    """When the GPU copy goes and the CPU copy stays, the key becomes T2."""
    producer = Producer()
    play(producer, "vllm_gpu_removed_cpu_kept")

    assert producer.held == dict.fromkeys(T16, T2)


def test_offload_placeholder() -> None:
    """On an empty index it is ignored; while the GPU copy lives it changes no tier."""
    producer = Producer()
    play(producer, "vllm_cpu_offload_placeholder")
    assert producer.held == {}

    play(producer, "vllm_map_blockstored", "vllm_cpu_offload_placeholder")
    assert producer.held == T16


def test_suffix_of_an_unseen_parent_is_no_prompt_start() -> None:
    """Its tokens alone must not match; after the parent arrives the chain is complete."""
    producer = Producer()
    play(producer, "vllm_suffix_unknown_parent")

    assert producer.held == {}
    assert producer.mapper.counters.orphaned_blocks == 1


def test_tokens_outside_their_range_are_dropped() -> None:
    """Padding values of pictures cost their events, not the batch."""
    producer = Producer()
    play(producer, "bad_token_range")

    assert producer.held == {}
    assert producer.mapper.counters.faults == {"token_ids": 2}


def test_clear_names_its_rank() -> None:
    """Only the rank in the batch is cleared."""
    producer = Producer()
    play(producer, "vllm_map_blockstored", "all_blocks_cleared_map")

    assert producer.held == T16
    assert decode_batch(payload("all_blocks_cleared_map"), DecodeSettings()).rank == 3


def test_lost_messages_restarts_and_the_end_marker() -> None:
    """Numbers are compared: a gap counts, the marker is no number, 0 again is a restart."""
    marker = (EVENTS / "replay_end_marker.bin").read_bytes()
    assert replay_frame([b"", marker, b""]) is None

    tracker = SequenceTracker(SequenceSettings(), has_replay=False)
    numbers = [
        command
        for number in (0, 1, 2, 5, 6)
        for command in tracker.live(Frame(number, payload("vllm_map_blockstored")), 0)
    ]
    assert tracker.counters.missing_numbers == 2
    assert len(numbers) == 6

    tracker.live(Frame(int.from_bytes(marker, "big"), b""), 0)
    assert len(tracker.live(Frame(7, payload("vllm_map_blockstored")), 0)) == 1
    restarted = Frame(0, payload("vllm_suffix_unknown_parent"))
    assert len(tracker.live(restarted, 0)) == 2
    assert tracker.live(restarted, 0) == []
    assert tracker.counters.restarts == 1
    assert tracker.counters.duplicates == 1


def test_every_payload_of_the_collection_is_used() -> None:
    """A new payload in the manifest needs a test here or with SGLang's."""
    manifest = json.loads((EVENTS / "manifest.json").read_text(encoding="utf-8"))
    tests = "".join(
        path.read_text(encoding="utf-8")
        for path in EVENTS.parents[2].joinpath("regressions").glob("test_field_*events.py")
    )

    assert [
        entry["file"] for entry in manifest if entry["file"].partition(".")[0] not in tests
    ] == []
