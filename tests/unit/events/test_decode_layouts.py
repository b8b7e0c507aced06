"""Every layout that a release of vLLM or SGLang sends means the same."""

import pytest
from engine_payloads import (
    HASH_A,
    T16,
    T16_KEY,
    array_clear,
    array_remove,
    array_store,
    batch,
    layouts,
    map_clear,
    map_remove,
    map_store,
)
from msgpack_bytes import NIL, array, binary, integer, mapping, real, text

from inferencecache.events import AllBlocksCleared, BlockRemoved, BlockStored, EventMapper
from inferencecache.events.decode import decode_batch
from inferencecache.events.token_packing import pack_tokens
from inferencecache.settings.producer import DecodeSettings, MapperSettings
from inferencecache.types import CacheTier

SETTINGS = DecodeSettings()

SQL = {"lora_id": integer(1), "lora_name": text("sql")}


def only_event(payload: bytes) -> object:
    """Return the single event of a payload without faults."""
    read = decode_batch(payload, SETTINGS)
    assert read.faults == {}
    (event,) = read.events
    return event


@pytest.mark.parametrize("name", layouts())
def test_every_layout_yields_the_same_key(name: str) -> None:
    """A root block gives one key at T1, whichever release sent it."""
    read = decode_batch(layouts()[name], SETTINGS)
    mapper = EventMapper(MapperSettings())
    mapper.apply(read, 0)

    assert read.faults == {}
    assert mapper.held_keys() == {("", T16_KEY): CacheTier.T1}


def test_envelope_of_newest_map_starts_with_map16() -> None:
    """The newest release's 16-key struct makes a header of de, whatever is written."""
    payload = layouts()["vllm-0.33 map de"]

    assert payload[11] == 0xDE
    assert isinstance(only_event(payload), BlockStored)


def test_fields_of_full_width_array_are_read_by_position() -> None:
    """Adapter, extra keys, group and kind sit at their documented places."""
    tail = {
        5: integer(7),
        6: text("CPU"),
        7: text("sql"),
        8: array([array([text("sql")])]),
        9: integer(2),
        10: text("mla_attention"),
    }
    event = only_event(batch(array_store(12, [5], T16, parent=4, tail=tail)))

    assert event == BlockStored(
        block_hashes=[5],
        parent_block_hash=4,
        packed_tokens=pack_tokens(T16),
        block_size=16,
        lora_id=7,
        lora_name="sql",
        medium="CPU",
        group_idx=2,
        kv_cache_spec_kind="mla_attention",
        opaque_from=1,
    )


def test_unsigned_signed_and_bytes_forms_of_a_hash_meet() -> None:
    """A hash is one number modulo 2**64, and a digest is its last 8 bytes."""
    value = HASH_A
    tail8 = value.to_bytes(8, "big")
    forms = [
        integer(value),
        integer(value - 2**64),
        binary(tail8),
        binary(b"\x11" * 24 + tail8),
        binary(b"\x22" * 8 + tail8),
    ]
    for form in forms:
        event = only_event(batch(map_store([1], T16, block_hashes=array([form]))))

        assert isinstance(event, BlockStored)
        assert event.block_hashes == [value]


def test_removals_and_clears_decode_in_both_families() -> None:
    """Removals keep medium and group; clears carry nothing."""
    assert only_event(batch(array_remove([1, 2]))) == BlockRemoved(block_hashes=[1, 2])
    assert only_event(batch(array_remove([1], width=4))) == BlockRemoved(
        block_hashes=[1], medium="GPU"
    )
    assert only_event(batch(map_remove([1], medium="CPU", group_idx=integer(3)))) == BlockRemoved(
        block_hashes=[1], medium="CPU", group_idx=3
    )
    assert only_event(batch(map_clear())) == AllBlocksCleared()
    assert only_event(batch(array_clear())) == AllBlocksCleared()


def test_extra_elements_and_keys_are_ignored() -> None:
    """A later release may append to arrays, envelopes and maps."""
    longer = array_store(12, [1], T16)
    longer = bytes([longer[0] + 2]) + longer[1:] + integer(1) + text("new")
    envelope = array([real(1.0), array([longer, map_store([2], T16, novelty=real(1.5))]), NIL, NIL])
    read = decode_batch(envelope, SETTINGS)

    assert [event.block_hashes for event in read.events if isinstance(event, BlockStored)] == [
        [1],
        [2],
    ]
    assert read.faults == {}
    assert read.rank is None


@pytest.mark.parametrize(
    "store",
    [
        array_store(8, [1], T16, tail={7: mapping({"cache_salt": text("s")})}),
        map_store([1], T16, cache_salt=text("s")),
        map_store([1], T16, mm_keys=array([text("image")])),
        map_store([1], T16, extra_keys=array([array([text("salt")])])),
        map_store([1], T16, extra_keys=array([array([array([text("img"), integer(1)])])])),
        map_store([1], T16, extra_keys=array([NIL, NIL])),
        map_store([1], T16, extra_keys=array([text("bare")])),
        map_store([1], T16, **SQL, extra_keys=array([array([text("sql"), text("sql")])])),
        array_store(
            9, [1], T16, tail={7: SQL["lora_name"], 8: array([array([text("sql"), text("sql")])])}
        ),
        map_store([1], T16, token_ids=array([text("x")] * 16)),
    ],
)
def test_content_beyond_tokens_makes_a_store_opaque(store: bytes) -> None:
    """Salts, even one like the adapter's name, images, text tokens, unassignable extra keys."""
    event = only_event(batch(store))

    assert isinstance(event, BlockStored)
    assert event.opaque_from == 0


@pytest.mark.parametrize("keys", [NIL, array([]), array([NIL]), array([text("sql")])])
def test_an_adapters_name_alone_is_no_foreign_content(keys: bytes) -> None:
    """It says what the event says already."""
    event = only_event(batch(map_store([1], T16, **SQL, extra_keys=array([keys]))))

    assert isinstance(event, BlockStored)
    assert event.opaque_from == 1


def test_only_blocks_from_the_first_foreign_one_are_opaque() -> None:
    """Text before the first image stays usable."""
    keys = array([NIL, array([]), array([array([text("img"), integer(0)])])])
    event = only_event(batch(map_store([1, 2, 3], T16 * 3, extra_keys=keys)))

    assert isinstance(event, BlockStored)
    assert event.opaque_from == 2


def test_remote_locality_is_marked() -> None:
    """What lies in a shared store is no proof that the replica has it."""
    remote = only_event(batch(map_store([1], T16, locality=text("REMOTE"))))
    removal = only_event(batch(map_remove([1], locality=text("REMOTE"))))

    assert isinstance(remote, BlockStored)
    assert isinstance(removal, BlockRemoved)
    assert remote.is_remote
    assert removal.is_remote
