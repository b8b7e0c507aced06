"""What cannot be decoded is counted by cause and costs nothing else."""

import pytest
from engine_payloads import T16, array_store, batch, map_remove, map_store
from msgpack_bytes import NIL, TRUE, array, binary, integer, integers, mapping, real, text

from inferencecache.errors import MalformedEventError
from inferencecache.events import BlockStored
from inferencecache.events.decode import decode_batch
from inferencecache.events.wire_values import peek_timestamp_ns
from inferencecache.settings.producer import DecodeSettings

SETTINGS = DecodeSettings()

BAD_EVENTS = {
    "unknown tag, map": (mapping({"type": text("BlockPromoted")}), "unknown_type"),
    "unknown tag, array": (array([text("BlockPromoted"), NIL]), "unknown_type"),
    "no tag": (mapping({"block_hashes": NIL}), "event"),
    "no event": (integer(7), "event"),
    "empty bin": (binary(b""), "event"),
    "bin of garbage": (binary(b"\xc1\xc1"), "event"),
    "bin in bin": (binary(binary(map_store([1], T16))), "event"),
    "nil hashes": (map_store([1], T16, block_hashes=NIL), "block_hashes"),
    "hashes missing": (mapping({"type": text("BlockRemoved")}), "block_hashes"),
    "bool hash": (map_store([1], T16, block_hashes=array([TRUE])), "block_hashes"),
    "float hash": (map_store([1], T16, block_hashes=array([real(1.0)])), "block_hashes"),
    "hash of odd length": (
        map_store([1], T16, block_hashes=array([binary(b"abc")])),
        "block_hashes",
    ),
    "text hash": (map_store([1], T16, block_hashes=array([text("abc")])), "block_hashes"),
    "bool parent": (map_store([1], T16, parent_block_hash=TRUE), "parent_block_hash"),
    "negative token": (map_store([1], [-1, *T16[1:]]), "token_ids"),
    "token over u32": (map_store([1], [2**32, *T16[1:]]), "token_ids"),
    "bool token": (map_store([1], T16, token_ids=array([TRUE] * 16)), "token_ids"),
    "token pairs": (map_store([1], T16, token_ids=array([integers([1, 2])] * 16)), "bigram_tokens"),
    "token pairs, array": (
        array_store(6, [1], T16, tail={3: array([integers([1, 2])] * 16)}),
        "bigram_tokens",
    ),
    "size 0 with tokens": (map_store([1], T16, size=0), "block_size"),
    "negative size": (map_store([1], T16, size=-16), "block_size"),
    "huge size": (map_store([1], T16, size=65_537), "block_size"),
    "bool size": (map_store([1], T16, block_size=TRUE), "block_size"),
    "bool lora": (map_store([1], T16, lora_id=TRUE), "lora_id"),
    "text lora": (map_store([1], T16, lora_id=text("1")), "lora_id"),
    "lora name no text": (map_store([1], T16, lora_name=integer(1)), "lora_name"),
    "lora name no text, array": (array_store(8, [1], T16, tail={7: integer(1)}), "lora_name"),
    "skipped block": (map_store([1], T16 * 2), "token_count"),
    "missing tokens": (map_store([1, 2], T16), "token_count"),
    "extra keys no list": (map_store([1], T16, extra_keys=integer(1)), "extra_keys"),
    "negative group": (map_store([1], T16, group_idx=integer(-1)), "group_idx"),
    "array too short": (array([text("BlockStored"), integers([1])]), "event"),
    "removal medium no text": (
        array([text("BlockRemoved"), integers([1]), integer(3)]),
        "medium",
    ),
    "long lora name": (map_store([1], T16, lora_name=text("n" * 1_025)), "lora_name"),
    "long lora name, array": (array_store(8, [1], T16, tail={7: text("n" * 1_025)}), "lora_name"),
    "long medium": (map_store([1], T16, medium=text("n" * 1_025)), "medium"),
    "long medium of a removal": (map_remove([1], medium="n" * 1_025), "medium"),
    "long kind": (map_store([1], T16, kv_cache_spec_kind=text("n" * 1_025)), "kv_cache_spec_kind"),
    "long locality": (map_store([1], T16, locality=text("n" * 1_025)), "locality"),
    "bad text": (map_store([1], T16, medium=b"\xa2\xff\xfe"), "event"),
}


@pytest.mark.parametrize("name", BAD_EVENTS)
def test_bad_event_is_counted_and_its_neighbours_survive(name: str) -> None:
    """The events before and after a bad one are decoded, and the cause is named."""
    event, cause = BAD_EVENTS[name]
    read = decode_batch(batch(map_store([10], T16), event, map_remove([11])), SETTINGS)

    assert [found.block_hashes for found in read.events] == [[10], [11]]  # type: ignore[union-attr]
    assert read.faults == {cause: 1}


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        NIL,
        integer(5),
        text("hello"),
        array([]),
        array([real(1.0)]),
        array([real(1.0), NIL]),
        array([real(1.0), integer(3), NIL]),
        mapping({"ts": real(1.0)}),
        batch(map_store([1], T16))[:-3],
        batch(map_store([1], T16)) + b"\x00",
        b"\x93\xcb" + b"\x00" * 8 + b"\xdd\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\xc6\x06\x00\x00\x00",
        b"\x91" * 100_000,
    ],
)
def test_unreadable_envelope_is_a_malformed_event_error(payload: bytes) -> None:
    """Nothing but MalformedEventError leaves, and its text carries no content."""
    with pytest.raises(MalformedEventError) as caught:
        decode_batch(payload, SETTINGS)

    assert caught.value.reason in {"envelope", "events"}


def test_nesting_is_foreign_content_until_it_is_refused() -> None:
    """Nested extra keys make a block opaque; nesting no reader can follow costs the batch."""
    nested = map_store([1], T16, extra_keys=b"\x91" * 50 + NIL)
    read = decode_batch(batch(nested, map_remove([2])), SETTINGS)
    (store, _) = read.events
    assert isinstance(store, BlockStored)
    assert store.opaque_from == 0

    with pytest.raises(MalformedEventError):
        decode_batch(batch(map_store([1], T16, extra_keys=b"\x91" * 50_000 + NIL)), SETTINGS)


def test_caps_are_enforced() -> None:
    """Payload bytes and events cost the batch, hashes cost the event."""
    store = map_store([1, 2, 3], T16 * 3)
    with pytest.raises(MalformedEventError, match="payload_bytes"):
        decode_batch(batch(store), DecodeSettings(payload_bytes_max=64))
    with pytest.raises(MalformedEventError, match="events"):
        decode_batch(batch(store, store), DecodeSettings(events_max=1))
    long = [store, map_remove([1, 2, 3]), map_remove([4])]
    read = decode_batch(batch(*long), DecodeSettings(hashes_max=2))

    assert read.faults == {"block_hashes": 2}
    assert len(read.events) == 1


def test_the_longest_name_is_taken() -> None:
    """It fits into a report, whatever its characters are."""
    read = decode_batch(batch(map_store([1], T16, lora_name=text("\U0001f600" * 1_024))), SETTINGS)
    assert read.faults == {}


def test_placeholder_without_tokens_is_no_fault() -> None:
    """Size 0 and no tokens is how a connector moves blocks it does not describe."""
    for tokens in (integers([]), NIL):
        read = decode_batch(
            batch(map_store([1], [], size=0, token_ids=tokens, medium=text("CPU"))), SETTINGS
        )
        (event,) = read.events

        assert isinstance(event, BlockStored)
        assert event.packed_tokens == b""
        assert read.faults == {}


def test_trailing_tokens_of_a_partial_block_are_tolerated() -> None:
    """Tokens after the last full block belong to no hash."""
    read = decode_batch(batch(map_store([1], [*T16, 1, 2, 3])), SETTINGS)

    assert read.faults == {}


def test_unusable_time_or_rank_does_not_cost_the_batch() -> None:
    """Time becomes 0 and rank unknown."""
    for time in (NIL, text("now"), TRUE):
        read = decode_batch(array([time, array([map_store([1], T16)]), text("r")]), SETTINGS)

        assert len(read.events) == 1
        assert (read.timestamp_ns, read.rank) == (0, None)
        assert read.faults == {"timestamp": 1}
    for seconds in (float("nan"), float("inf"), -1.0, 1e300, 0.0):
        read = decode_batch(batch(map_store([1], T16), ts=seconds, rank=70_000), SETTINGS)

        assert (read.timestamp_ns, read.rank) == (0, None)


def test_time_can_be_read_without_decoding() -> None:
    """The usual envelope shows its time at a fixed place; others show none."""
    assert peek_timestamp_ns(batch(ts=2.5)) == 2_500_000_000
    assert peek_timestamp_ns(array([integer(3), array([])])) == 0
    assert peek_timestamp_ns(b"\x93\xcb\x00") == 0
    assert peek_timestamp_ns(mapping({"ts": real(1.0), "events": array([])})) == 0


def test_error_text_does_not_quote_content() -> None:
    """Neither tokens nor names of adapters appear in what is raised or counted."""
    too_large = [987_654_321_000, *T16[1:]]
    events = [map_store([1], too_large), map_store([1], T16, lora_id=text("secret"))]
    read = decode_batch(batch(*events), SETTINGS)

    assert set(read.faults) == {"token_ids", "lora_id"}
