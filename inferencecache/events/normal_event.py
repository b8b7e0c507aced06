"""Events as engines send them to the messages the mapper takes, whatever the layout.

Some engines send an event per block, so the way of a usual store is written flat: positional
arguments, no calls for what is not there.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from inferencecache.errors import MalformedEventError
from inferencecache.events.messages import AllBlocksCleared, BlockRemoved, BlockStored, Event
from inferencecache.events.token_packing import TOKEN_BYTES, pack_tokens
from inferencecache.events.wire_layouts import (
    NIL,
    ArrayCleared,
    ArrayEvent,
    ArrayRemoved,
    ArrayStored,
    MapCleared,
    MapEvent,
    MapRemoved,
    MapStored,
    MapStoredText,
    WireHash,
)
from inferencecache.events.wire_values import first_opaque, is_present, normal_hash, normal_hashes
from inferencecache.settings.producer import DecodeSettings

_CLEARED: Final = AllBlocksCleared()
_LOCAL: Final = frozenset({None, "LOCAL"})


def normal_events(read: Iterable[MapEvent | ArrayEvent], settings: DecodeSettings) -> list[Event]:
    """Return what *read* says, in order.

    Raises:
        MalformedEventError: A value is out of its range, or blocks and tokens disagree.
    """
    try:
        return [_READERS[type(event)](event, settings) for event in read]
    except OverflowError:
        raise MalformedEventError(reason="token_ids", detail="out of range") from None


def opaque_event(read: MapStoredText, settings: DecodeSettings) -> BlockStored:
    """Return a store of content that is no tokens, which is thus never fingerprinted.

    Raises:
        MalformedEventError: As for :func:`normal_event`.
    """
    hashes, parent, size = read.block_hashes, read.parent_block_hash, read.block_size
    _require_whole_blocks(len(read.token_ids), size, len(hashes))
    return BlockStored(
        _hashes(hashes, settings),
        parent if parent is None else normal_hash(parent),
        bytes(TOKEN_BYTES * len(read.token_ids)),  # only their number matters
        size,
        0,
        read.lora_id,
        read.lora_name or "",
        read.medium or "",
        read.group_idx or 0,
        read.kv_cache_spec_kind or "",
        read.locality not in _LOCAL,
    )


def _map_stored(read: MapStored, settings: DecodeSettings) -> BlockStored:
    hashes, parent, tokens = read.block_hashes, read.parent_block_hash, read.token_ids
    size, opaque_from, lora_name = read.block_size, len(hashes), read.lora_name or ""
    if tokens and opaque_from * size != len(tokens):
        _require_whole_blocks(len(tokens), size, opaque_from)
    if read.extra_keys is not NIL or read.cache_salt is not NIL or read.mm_keys is not NIL:
        opaque_from = _described(read, lora_name)
    return BlockStored(
        _hashes(hashes, settings),
        parent if parent is None else normal_hash(parent),
        pack_tokens(tokens) if tokens else b"",
        size,
        opaque_from,
        read.lora_id,
        lora_name,
        read.medium or "",
        read.group_idx or 0,
        read.kv_cache_spec_kind or "",
        read.locality not in _LOCAL,
    )


def _described(read: MapStored, lora_name: str) -> int:
    """Return how many leading blocks of *read* their tokens describe."""
    if is_present(read.cache_salt) or is_present(read.mm_keys):
        return 0
    return first_opaque(read.extra_keys, lora_name, len(read.block_hashes))


def _array_stored(read: ArrayStored, settings: DecodeSettings) -> BlockStored:
    hashes, parent, tokens = read.block_hashes, read.parent_block_hash, read.token_ids
    size, opaque_from, lora_name = read.block_size, len(hashes), ""
    if tokens and opaque_from * size != len(tokens):
        _require_whole_blocks(len(tokens), size, opaque_from)
    if isinstance(read.adapter, dict):
        if any(value is not None for value in read.adapter.values()):
            opaque_from = 0
    else:
        lora_name = read.adapter or ""
    if read.extra_keys is not NIL and opaque_from:
        opaque_from = first_opaque(read.extra_keys, lora_name, len(hashes))
    return BlockStored(
        _hashes(hashes, settings),
        parent if parent is None else normal_hash(parent),
        pack_tokens(tokens) if tokens else b"",
        size,
        opaque_from,
        read.lora_id,
        lora_name,
        read.medium or "",
        read.group_idx or 0,
        read.kv_cache_spec_kind or "",
    )


def _map_removed(read: MapRemoved, settings: DecodeSettings) -> BlockRemoved:
    return BlockRemoved(
        block_hashes=_hashes(read.block_hashes, settings),
        medium=read.medium or "",
        group_idx=read.group_idx or 0,
        is_remote=read.locality not in _LOCAL,
    )


def _array_removed(read: ArrayRemoved, settings: DecodeSettings) -> BlockRemoved:
    return BlockRemoved(
        block_hashes=_hashes(read.block_hashes, settings),
        medium=read.medium or "",
        group_idx=read.group_idx or 0,
    )


def _cleared(_read: MapCleared | ArrayCleared, _settings: DecodeSettings) -> AllBlocksCleared:
    return _CLEARED


def _hashes(values: list[WireHash], settings: DecodeSettings) -> list[int]:
    if len(values) == 1:
        value = values[0]
        is_normal = isinstance(value, int) and value >= 0
        return values if is_normal else [normal_hash(value)]  # type: ignore[return-value]
    if len(values) > settings.hashes_max:
        raise MalformedEventError(reason="block_hashes", detail=f"{len(values)} in one event")
    return normal_hashes(values)


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


_READERS: Final[dict[type, Callable[[Any, DecodeSettings], Event]]] = {
    MapStored: _map_stored,
    ArrayStored: _array_stored,
    MapRemoved: _map_removed,
    ArrayRemoved: _array_removed,
    MapCleared: _cleared,
    ArrayCleared: _cleared,
}
