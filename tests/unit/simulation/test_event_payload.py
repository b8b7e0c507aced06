"""Simulated events have the bytes that each release is documented to write."""

import pytest
from engine_payloads import (
    HASH_A,
    array_clear,
    array_remove,
    array_store,
    batch,
    map_clear,
    map_remove,
    map_store,
    old_batch,
)
from msgpack_bytes import NIL, array, binary, integer, integers, mapping, text

from inferencecache.simulation import (
    LAYOUTS,
    ClearedBlocks,
    EngineEvent,
    HashForm,
    RemovedBlocks,
    StoredBlocks,
)
from inferencecache.simulation.event_payload import encode_batch

TOKENS = list(range(1_000, 1_016))
SIGNED = HASH_A - 2**64
FULL = {"group_idx": integer(0), "kv_cache_spec_kind": text("full_attention")}
LOCAL = {**FULL, "locality": text("LOCAL")}


def sglang_map(**more: bytes) -> bytes:
    """Return a store as SGLang's maps have it."""
    fields = {
        "type": text("BlockStored"),
        "block_hashes": integers([SIGNED]),
        "parent_block_hash": NIL,
        "token_ids": integers(TOKENS),
        "block_size": integer(16),
        "lora_id": NIL,
        "medium": text("GPU"),
    }
    return batch(mapping({**fields, **more}))


STORED = {
    "vllm-0.9.0": old_batch(array_store(6, [SIGNED], TOKENS)),
    "vllm-0.9.1": batch(array_store(6, [SIGNED], TOKENS)),
    "vllm-0.10.2": batch(array_store(7, [HASH_A], TOKENS)),
    "vllm-0.14": batch(array_store(8, [HASH_A], TOKENS)),
    "vllm-0.17": batch(array_store(9, [HASH_A], TOKENS)),
    "vllm-0.20": batch(array_store(10, [HASH_A], TOKENS, tail={9: integer(0)})),
    "vllm-0.22": batch(
        array_store(12, [HASH_A], TOKENS, tail={9: integer(0), 10: text("full_attention")})
    ),
    "vllm-0.24": batch(map_store([HASH_A], TOKENS, **FULL)),
    "vllm-0.26": batch(map_store([HASH_A], TOKENS, **LOCAL)),
    "vllm-0.29": batch(map_store([HASH_A], TOKENS, **LOCAL)),
    "vllm-0.30": batch(map_store([HASH_A], TOKENS, **LOCAL)),
    "vllm-0.33": batch(map_store([HASH_A], TOKENS, header=16, **LOCAL)),
    "sglang-0.4.7": batch(array_store(6, [SIGNED], TOKENS)),
    "sglang-0.5.9": batch(array_store(7, [SIGNED], TOKENS)),
    "sglang-0.5.13": batch(array_store(7, [SIGNED], TOKENS)),
    "sglang-0.5.20": sglang_map(),
    "sglang-0.5.22": sglang_map(),
}


def root(**more: object) -> StoredBlocks:
    """Return the store of one block at a prompt's start."""
    fields = {"labels": [HASH_A], "parent": None, "tokens": TOKENS, "block_size_tokens": 16, **more}
    return StoredBlocks(**fields)  # type: ignore[arg-type] # a test's shorthand


def encoded(name: str, event: EngineEvent, form: HashForm | None = None) -> bytes:
    """Return a batch of one event in the layout *name*."""
    layout = LAYOUTS[name]
    return encode_batch([event], layout, form or layout.hash_form, 0, 1_700_000_000.0)


@pytest.mark.parametrize("name", LAYOUTS)
def test_store_of_one_block(name: str) -> None:
    """A plain store has exactly the documented bytes."""
    assert encoded(name, root()) == STORED[name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vllm-0.9.1", array_remove([SIGNED], width=2)),
        ("vllm-0.10.2", array_remove([HASH_A], width=3)),
        ("vllm-0.20", array_remove([HASH_A], width=4, group_idx=0)),
        ("vllm-0.24", map_remove([HASH_A], group_idx=integer(0))),
        ("sglang-0.5.9", array_remove([SIGNED], width=3)),
        ("sglang-0.5.20", map_remove([SIGNED])),
    ],
)
def test_removal(name: str, expected: bytes) -> None:
    """Removals grow with the release as stores do."""
    assert encoded(name, RemovedBlocks(labels=[HASH_A])) == batch(expected)


def test_clear() -> None:
    """A clear is an array or a map of its tag alone."""
    assert encoded("vllm-0.22", ClearedBlocks()) == batch(array_clear())
    assert encoded("vllm-0.33", ClearedBlocks()) == batch(map_clear())


@pytest.mark.parametrize(
    ("form", "packed"),
    [
        (HashForm.UNSIGNED, integer(HASH_A)),
        (HashForm.SIGNED, integer(SIGNED)),
        (HashForm.BYTES_8, binary(HASH_A.to_bytes(8, "big"))),
        (HashForm.BYTES_16, binary(HASH_A.to_bytes(16, "big"))),
        (HashForm.BYTES_32, binary(HASH_A.to_bytes(32, "big"))),
    ],
)
def test_forms_of_a_hash(form: HashForm, packed: bytes) -> None:
    """One label can be written as an integer of either sign or as a digest."""
    expected = batch(mapping({**_removed_fields(), "block_hashes": array([packed])}))

    assert encoded("vllm-0.24", RemovedBlocks(labels=[HASH_A]), form) == expected


def _removed_fields() -> dict[str, bytes]:
    names = ("type", "block_hashes", "medium", "group_idx")
    return dict(zip(names, (text("BlockRemoved"), NIL, text("GPU"), integer(0)), strict=True))


def test_salt_and_adapter_are_extra_keys_of_vllm() -> None:
    """The first block of a prompt carries the salt, every block the adapter's name."""
    event = root(labels=[1, 2], tokens=TOKENS * 2, lora_id=7, lora_name="sql", salt="tenant-salt")
    keys = array([array([text("sql"), text("tenant-salt")]), array([text("sql")])])
    more = {"lora_id": integer(7), "lora_name": text("sql"), "extra_keys": keys, **FULL}

    assert encoded("vllm-0.24", event) == batch(map_store([1, 2], TOKENS * 2, **more))


@pytest.mark.parametrize("name", ["sglang-0.5.9", "sglang-0.5.13"])
def test_salt_makes_an_array_of_sglang_longer(name: str) -> None:
    """An eighth element, a map, appears for salted blocks alone."""
    expected = array_store(8, [SIGNED], TOKENS, tail={7: mapping({"cache_salt": text("x")})})

    assert encoded(name, root(salt="x")) == batch(expected)


def test_salt_and_adapter_in_a_map_of_sglang() -> None:
    """Both have keys of their own; the adapter's number is never sent."""
    more = {"cache_salt": text("x"), "lora_name": text("sql")}

    assert encoded("sglang-0.5.22", root(salt="x", lora_id=7, lora_name="sql")) == sglang_map(
        **more
    )
