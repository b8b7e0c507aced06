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
from inferencecache.events.messages import Event, EventBatch
from inferencecache.events.normal_event import normal_events, opaque_event
from inferencecache.events.wire_values import (
    DECODE_ERRORS,
    read_rank,
    read_timestamp_ns,
    timestamp_ns,
    usable_rank,
)
from inferencecache.settings.producer import DecodeSettings

UNKNOWN_TYPE: Final = "unknown_type"

_Read = TypeVar("_Read")
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
        events = normal_events(read.events, settings)
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
    may_hide_removals = False
    moment = read_timestamp_ns(time)
    if moment is None:
        _count(faults, "timestamp")
    events: list[Event] = []
    for packed in _split_events(packed_events, settings):
        try:
            events.append(_read_event(bytes(packed), settings))
        except MalformedEventError as error:
            _count(faults, error.reason)
            may_hide_removals |= _may_remove(bytes(packed))
    return EventBatch(
        timestamp_ns=moment or 0,
        rank=read_rank(rank),
        events=events,
        faults=faults,
        may_hide_removals=may_hide_removals,
    )


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


def _may_remove(packed: bytes) -> bool:
    """Tell whether an event with a fault may have removed blocks.

    A store does not, and neither does a kind we do not know: releases add kinds, and one that comes
    with every batch must not put everything in doubt for ever.
    """
    try:
        tag = _tag_of(_unpacked(packed))
    except MalformedEventError:
        return True
    return tag in layout.KNOWN_TAGS and tag != layout.STORED_TAG


def _read_event(packed: bytes, settings: DecodeSettings) -> Event:
    packed = _unpacked(packed)
    tag = _tag_of(packed)
    _require_known(tag)
    if packed[0] in _MAP_MARKS:
        return _read_map(packed, settings)
    return normal_events([_read(_array_event, packed, layout.ARRAY_FIELDS[tag])], settings)[0]


def _unpacked(packed: bytes) -> bytes:
    """Return an event that was packed once more as it was before."""
    return _read(_bytes, packed) if packed[0] in _BIN_MARKS else packed


def _tag_of(packed: bytes) -> str:
    mark = packed[0] if packed else 0
    if mark in _MAP_MARKS:
        return _read(_map_tag, packed).type
    if mark in _ARRAY_MARKS:
        return _read(_array_tag, packed).type
    raise MalformedEventError(reason="event", detail="neither array nor map")


def _read_map(packed: bytes, settings: DecodeSettings) -> Event:
    try:
        read = _read(_map_event, packed)
    except MalformedEventError as error:
        if error.reason != "token_ids":
            raise
        try:
            return opaque_event(_map_text.decode(packed), settings)
        except DECODE_ERRORS:
            raise error from None
    return normal_events([read], settings)[0]


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
