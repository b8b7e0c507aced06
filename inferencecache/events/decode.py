"""Bytes of an engine's publisher to :class:`EventBatch`, whatever the release.

Theory of operation
-------------------
Nearly every batch is an array of a float time and events of one layout, so the whole payload is
first read in one typed pass. When anything in it does not fit, the batch is read again event by
event: what fits is kept, what does not is counted under the name of the offending field. Which
layout an event has is told by its first byte, and all header widths count.

Rules of this file
------------------
* The only error that leaves :func:`decode_batch` is MalformedEventError, and only for an envelope
  that cannot be read; a bad event never costs its batch.
* Nothing is allocated on the word of a length in the payload: sizes are capped first, and msgspec
  never reserves more than there is input.
* Error texts never carry values, since token ids are private.
"""

import re
from typing import Final, TypeVar

import msgspec

from inferencecache.errors import MalformedEventError
from inferencecache.events import wire_layouts as layout
from inferencecache.events.messages import AllBlocksCleared, BlockRemoved, BlockStored, EventBatch
from inferencecache.events.messages import Event as DecodedEvent
from inferencecache.events.wire_values import (
    DECODE_ERRORS,
    HASH_MASK,
    first_opaque,
    is_present,
    normal_hash,
    read_rank,
    read_timestamp_ns,
    timestamp_ns,
    usable_rank,
)
from inferencecache.settings.producer import DecodeSettings

UNKNOWN_TYPE: Final = "unknown_type"

_Read = TypeVar("_Read")
_StoredLayout = layout.MapStored | layout.ArrayStored

_CLEARED: Final = AllBlocksCleared()
_LOCAL: Final = frozenset({None, "LOCAL"})
_BIN_MARKS: Final = frozenset({0xC4, 0xC5, 0xC6})
_ARRAY_16: Final = 0xDC
_ARRAY_32: Final = 0xDD
_MAP_MARKS: Final = frozenset({*range(0x80, 0x90), 0xDE, 0xDF})
_ARRAY_MARKS: Final = frozenset({*range(0x90, 0xA0), _ARRAY_16, _ARRAY_32})
_EVENTS_OFFSET: Final = 10
_MARK_MASK: Final = 0x0F
_ENVELOPE_MIN: Final = 2
_FIELD_IN_ERROR: Final = re.compile(r"- at `\$(?:\.(\w+)|\[(\d+)\])")
_FIELD_MISSING: Final = re.compile(r"required field `(\w+)`")
_FAULT_FIELDS: Final = frozenset({*layout.ARRAY_FIELDS["BlockStored"], "locality"}) - {"type"}

_map_batch = msgspec.msgpack.Decoder(layout.MapBatch)
_array_batch = msgspec.msgpack.Decoder(layout.ArrayBatch)
_map_envelope = msgspec.msgpack.Decoder(layout.MapEnvelope)
_raw_list = msgspec.msgpack.Decoder(list[msgspec.Raw])
_bytes = msgspec.msgpack.Decoder(bytes)
_map_tag = msgspec.msgpack.Decoder(layout.MapTag)
_array_tag = msgspec.msgpack.Decoder(layout.ArrayTag)
_map_event: msgspec.msgpack.Decoder[layout.MapEvent] = msgspec.msgpack.Decoder(layout.MapEvent)
_map_text = msgspec.msgpack.Decoder(layout.MapStoredText)
_array_event: msgspec.msgpack.Decoder[layout.ArrayEvent] = msgspec.msgpack.Decoder(
    layout.ArrayEvent
)


def decode_batch(payload: bytes, settings: DecodeSettings) -> EventBatch:
    """Decode one message of an engine's publisher.

    Args:
        payload: The message's last frame.
        settings: Caps on sizes.

    Returns:
        The batch; events that could not be decoded are counted in its ``faults``.

    Raises:
        MalformedEventError: The envelope cannot be read or is over a cap.
    """
    if len(payload) > settings.payload_bytes_max:
        raise MalformedEventError(reason="payload_bytes", detail=f"{len(payload)} bytes")
    batch = _read_uniform(payload, settings)
    return batch if batch is not None else _read_mixed(payload, settings)


def _read_uniform(payload: bytes, settings: DecodeSettings) -> EventBatch | None:
    """Decode a batch whose events share one layout and have no fault; None for any other."""
    header = payload[_EVENTS_OFFSET : _EVENTS_OFFSET + 6]
    events_total, width = _array_length(header)
    if not 0 < events_total <= settings.events_max:
        return None
    mark = header[width] if len(header) > width else 0
    try:
        if mark in _MAP_MARKS:
            read: layout.MapBatch | layout.ArrayBatch = _map_batch.decode(payload)
        elif mark in _ARRAY_MARKS:
            read = _array_batch.decode(payload)
        else:
            return None
        events = [_event(event, settings) for event in read.events]
    except (*DECODE_ERRORS, MalformedEventError):
        return None
    if len(events) > settings.events_max or not usable_rank(read.rank):
        return None
    return EventBatch(timestamp_ns=timestamp_ns(read.ts), rank=read.rank, events=events, faults={})


def _array_length(header: bytes) -> tuple[int, int]:
    """Return the length an array header announces and the header's width; (0, 0) for others."""
    if not header or header[0] not in _ARRAY_MARKS:
        return 0, 0
    if header[0] == _ARRAY_16:
        return int.from_bytes(header[1:3], "big"), 3
    if header[0] == _ARRAY_32:
        return int.from_bytes(header[1:5], "big"), 5
    return header[0] & _MARK_MASK, 1


def _read_mixed(payload: bytes, settings: DecodeSettings) -> EventBatch:
    time, packed_events, rank = _envelope(payload)
    faults: dict[str, int] = {}
    moment = read_timestamp_ns(time)
    if moment is None:
        _count(faults, "timestamp")
    events: list[DecodedEvent] = []
    for packed in _split_events(packed_events, settings):
        try:
            events.append(_read_event(bytes(packed), settings))
        except MalformedEventError as error:
            _count(faults, error.reason)
    return EventBatch(timestamp_ns=moment or 0, rank=read_rank(rank), events=events, faults=faults)


def _envelope(payload: bytes) -> tuple[msgspec.Raw, msgspec.Raw, msgspec.Raw]:
    try:
        if payload and payload[0] in _MAP_MARKS:
            read = _map_envelope.decode(payload)
            return read.ts, read.events, read.data_parallel_rank
        parts = _raw_list.decode(payload)
    except DECODE_ERRORS:
        raise MalformedEventError(reason="envelope", detail="not readable") from None
    if len(parts) < _ENVELOPE_MIN:
        raise MalformedEventError(reason="envelope", detail=f"{len(parts)} elements")
    return parts[0], parts[1], parts[2] if len(parts) > _ENVELOPE_MIN else layout.NIL


def _split_events(packed: msgspec.Raw, settings: DecodeSettings) -> list[msgspec.Raw]:
    events_total, _ = _array_length(bytes(packed)[:6])
    if events_total > settings.events_max:
        raise MalformedEventError(reason="events", detail=f"{events_total} in one batch")
    try:
        return _raw_list.decode(packed)
    except DECODE_ERRORS:
        raise MalformedEventError(reason="envelope", detail="events are no list") from None


def _read_event(packed: bytes, settings: DecodeSettings) -> DecodedEvent:
    if packed[0] in _BIN_MARKS:
        packed = _read(_bytes, packed)
    mark = packed[0] if packed else 0
    if mark in _MAP_MARKS:
        _require_known(_read(_map_tag, packed).type)
        return _read_map(packed, settings)
    if mark in _ARRAY_MARKS:
        tag = _read(_array_tag, packed).type
        _require_known(tag)
        return _event(_read(_array_event, packed, layout.ARRAY_FIELDS[tag]), settings)
    raise MalformedEventError(reason="event", detail="neither array nor map")


def _read_map(packed: bytes, settings: DecodeSettings) -> DecodedEvent:
    try:
        read = _read(_map_event, packed)
    except MalformedEventError as error:
        if error.reason != "token_ids":
            raise
        try:
            return _text_stored(_map_text.decode(packed), settings)
        except DECODE_ERRORS:
            raise error from None
    return _event(read, settings)


def _require_known(tag: str) -> None:
    if tag not in layout.KNOWN_TAGS:
        raise MalformedEventError(reason=UNKNOWN_TYPE, detail="not a kind of event we know")


def _read(
    decoder: "msgspec.msgpack.Decoder[_Read]", packed: bytes, fields: tuple[str, ...] = ()
) -> _Read:
    try:
        return decoder.decode(packed)
    except DECODE_ERRORS as error:
        reason = _fault_of(str(error), fields)
        raise MalformedEventError(reason=reason, detail="wrong shape") from None


def _fault_of(text: str, fields: tuple[str, ...]) -> str:
    """Name the field that an error of msgspec is about; its values stay unread.

    Args:
        text: The error.
        fields: Names of an array's elements.
    """
    found = _FIELD_IN_ERROR.search(text)
    if found is None:
        missing = _FIELD_MISSING.search(text)
        name = missing.group(1) if missing else "event"
    elif found.group(1) is not None:
        name = found.group(1)
    else:
        position = int(found.group(2))
        name = fields[position] if position < len(fields) else "event"
    if name == "token_ids" and "got `array`" in text:
        return "bigram_tokens"
    return name if name in _FAULT_FIELDS else "event"


def _count(faults: dict[str, int], cause: str) -> None:
    faults[cause] = faults.get(cause, 0) + 1


def _event(read: layout.MapEvent | layout.ArrayEvent, settings: DecodeSettings) -> DecodedEvent:
    if isinstance(read, layout.MapStored):
        foreign = (read.mm_keys is not layout.NIL and is_present(read.mm_keys)) or (
            read.cache_salt is not layout.NIL and is_present(read.cache_salt)
        )
        return _stored(read, settings, read.lora_name or "", is_foreign=foreign)
    if isinstance(read, layout.ArrayStored):
        return _array_stored(read, settings)
    if isinstance(read, layout.MapRemoved):
        return _removed(read, settings, is_remote=read.locality not in _LOCAL)
    if isinstance(read, layout.ArrayRemoved):
        return _removed(read, settings, is_remote=False)
    return _CLEARED


def _array_stored(read: layout.ArrayStored, settings: DecodeSettings) -> BlockStored:
    if isinstance(read.adapter, dict):
        foreign = any(value is not None for value in read.adapter.values())
        return _stored(read, settings, "", is_foreign=foreign)
    return _stored(read, settings, read.adapter or "", is_foreign=False)


def _stored(
    read: _StoredLayout, settings: DecodeSettings, lora_name: str, *, is_foreign: bool
) -> BlockStored:
    sent, parent = read.block_hashes, read.parent_block_hash
    if len(sent) > settings.hashes_max:
        raise _too_many(len(sent))
    hashes = [value & HASH_MASK if isinstance(value, int) else normal_hash(value) for value in sent]
    tokens = read.token_ids or []
    if tokens and len(hashes) * read.block_size != len(tokens):
        _require_whole_blocks(len(tokens), read.block_size, len(hashes))
    extra_keys = read.extra_keys
    opaque_from = len(hashes)
    if is_foreign:
        opaque_from = 0
    elif extra_keys is not layout.NIL:
        opaque_from = first_opaque(extra_keys, lora_name, opaque_from)
    return BlockStored(
        block_hashes=hashes,
        parent_block_hash=parent & HASH_MASK if isinstance(parent, int) else _parent(parent),
        token_ids=tokens,
        block_size=read.block_size,
        lora_id=read.lora_id,
        lora_name=lora_name,
        medium=read.medium or "",
        group_idx=read.group_idx or 0,
        kv_cache_spec_kind=read.kv_cache_spec_kind or "",
        opaque_from=opaque_from,
        is_remote=isinstance(read, layout.MapStored) and read.locality not in _LOCAL,
    )


def _text_stored(read: layout.MapStoredText, settings: DecodeSettings) -> BlockStored:
    hashes = _hashes(read.block_hashes, settings)
    _require_whole_blocks(len(read.token_ids), read.block_size, len(hashes))
    parent = read.parent_block_hash
    return BlockStored(
        block_hashes=hashes,
        parent_block_hash=None if parent is None else normal_hash(parent),
        # Opaque blocks are never fingerprinted; only the count of tokens matters.
        token_ids=[0] * len(read.token_ids),
        block_size=read.block_size,
        lora_id=read.lora_id,
        lora_name=read.lora_name or "",
        medium=read.medium or "",
        group_idx=read.group_idx or 0,
        kv_cache_spec_kind=read.kv_cache_spec_kind or "",
        opaque_from=0,
        is_remote=read.locality not in _LOCAL,
    )


def _removed(
    read: layout.MapRemoved | layout.ArrayRemoved, settings: DecodeSettings, *, is_remote: bool
) -> BlockRemoved:
    return BlockRemoved(
        block_hashes=_hashes(read.block_hashes, settings),
        medium=read.medium or "",
        group_idx=read.group_idx or 0,
        is_remote=is_remote,
    )


def _hashes(values: list[layout.WireHash], settings: DecodeSettings) -> list[int]:
    if len(values) > settings.hashes_max:
        raise _too_many(len(values))
    return [normal_hash(value) for value in values]


def _parent(value: layout.WireHash | None) -> int | None:
    return None if value is None else normal_hash(value)


def _too_many(hashes_total: int) -> MalformedEventError:
    return MalformedEventError(reason="block_hashes", detail=f"{hashes_total} in one event")


def _require_whole_blocks(tokens_total: int, block_size: int, blocks_total: int) -> None:
    """Refuse a store whose tokens cannot be given to its blocks by position.

    Engines leave out blocks they skipped while the tokens span them too; nothing on the wire tells
    which are missing, so any guess could index the wrong content.
    """
    if tokens_total == 0 or blocks_total == 0:
        return
    if block_size == 0:
        raise MalformedEventError(reason="block_size", detail="0 with tokens")
    if tokens_total // block_size != blocks_total:
        raise MalformedEventError(reason="token_count", detail="blocks and tokens disagree")
