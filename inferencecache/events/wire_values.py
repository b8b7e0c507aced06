"""Single values of engine events: hashes, content that tokens do not describe, times."""

import math
import struct
from array import array
from typing import Any

import msgspec

from inferencecache.clock import NS_PER_S
from inferencecache.errors import MalformedEventError
from inferencecache.events.wire_layouts import NIL, RANK_MAX, WireHash

HASH_MASK = 2**64 - 1

_HASH_BYTES_ALLOWED = frozenset({8, 16, 32})
_HASH_TAIL_BYTES = 8
_SECONDS_MAX = 1e11
_NIL_BYTE = bytes(NIL)
_FLOAT_MARK = 0xCB
_TIMED_ENVELOPES = frozenset(range(0x92, 0xA0))
_TIMED_HEADER_BYTES = 10
_untyped = msgspec.msgpack.Decoder()
_number = msgspec.msgpack.Decoder(float)
_rank = msgspec.msgpack.Decoder(int | None)

DECODE_ERRORS = (msgspec.DecodeError, ValueError, RecursionError, OverflowError, MemoryError)
"""What msgspec raises on bytes it cannot read; ValueError covers bad text in UTF-8."""


def normal_hash(value: WireHash) -> int:
    """Return an engine's block label as an integer, 0 to 2**64 - 1.

    A signed and an unsigned integer of the same bits meet, and so does a digest with the integer
    that an engine makes of its last 8 bytes.

    Raises:
        MalformedEventError: A digest of a length no engine uses.
    """
    if isinstance(value, int):
        return value if value >= 0 else value & HASH_MASK
    if len(value) not in _HASH_BYTES_ALLOWED:
        raise MalformedEventError(reason="block_hashes", detail="a hash of unusual length")
    return int.from_bytes(value[-_HASH_TAIL_BYTES:], "big")


def normal_hashes(values: list[WireHash]) -> list[int]:
    """Return *values* as :func:`normal_hash` would; the same list if they all are so already.

    Raises:
        MalformedEventError: As for :func:`normal_hash`.
    """
    try:
        array("Q", values)  # type: ignore[type-var]  # what it refuses is what has to change
    except (OverflowError, TypeError):
        return [normal_hash(value) for value in values]
    return values  # type: ignore[return-value]


def first_opaque(extra_keys: msgspec.Raw, lora_name: str, blocks_total: int) -> int:
    """Return the position of the first block whose content its tokens do not describe.

    Args:
        extra_keys: What else went into each block's hash, one item per block.
        lora_name: The adapter's name; alone, it is no foreign content.
        blocks_total: Blocks of the event; returned when all are described.

    Raises:
        MalformedEventError: The field cannot be read.
    """
    if memoryview(extra_keys)[0] == _NIL_BYTE[0]:
        return blocks_total
    try:
        items = _untyped.decode(extra_keys)
    except DECODE_ERRORS:
        raise MalformedEventError(reason="extra_keys", detail="not readable") from None
    if not isinstance(items, list):
        raise MalformedEventError(reason="extra_keys", detail="not a list")
    if items and len(items) != blocks_total:
        return 0  # which block each item belongs to is unknown
    for position, item in enumerate(items):
        if not _is_described(item, lora_name):
            return position
    return blocks_total


def _is_described(item: Any, lora_name: str) -> bool:  # noqa: ANN401 - untyped by the engine
    if item is None:
        return True
    if not isinstance(item, list):
        return False
    # The adapter's name is there once; what else reads alike is a salt that somebody chose so.
    others = [key for key in item if key is not None]
    return not others or (lora_name != "" and others == [lora_name])


def is_present(value: msgspec.Raw) -> bool:
    """Tell whether an optional raw field was sent and is neither nil nor an empty list or map."""
    return value is not NIL and bytes(value) not in {_NIL_BYTE, b"\x90", b"\x80"}


def timestamp_ns(seconds: float) -> int:
    """Return *seconds* since 1970 in nanoseconds; 0 for what cannot be a time."""
    if not math.isfinite(seconds) or not 0 < seconds < _SECONDS_MAX:
        return 0
    return int(seconds * NS_PER_S)


def read_timestamp_ns(value: msgspec.Raw) -> int | None:
    """Return a raw timestamp in nanoseconds; None if it is no number."""
    try:
        return timestamp_ns(_number.decode(value))
    except DECODE_ERRORS:
        return None


def usable_rank(rank: int | None) -> bool:
    """Tell whether *rank* is absent or a rank an engine can have."""
    return rank is None or 0 <= rank <= RANK_MAX


def read_rank(value: msgspec.Raw) -> int | None:
    """Return a raw rank; None if absent or unusable."""
    try:
        rank = _rank.decode(value)
    except DECODE_ERRORS:
        return None
    return rank if usable_rank(rank) else None


def peek_timestamp_ns(payload: bytes) -> int:
    """Return a batch's time without decoding its events; 0 if it is not at the usual place."""
    if len(payload) < _TIMED_HEADER_BYTES or payload[0] not in _TIMED_ENVELOPES:
        return 0
    if payload[1] != _FLOAT_MARK:
        return 0
    return timestamp_ns(struct.unpack_from(">d", payload, 2)[0])
