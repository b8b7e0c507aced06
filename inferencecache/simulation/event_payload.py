"""Simulated engine events to the bytes that a release would publish.

Arrays are padded with nil to the release's width. Maps leave optional keys out while they have no
value, but the width of a map's header follows the number of keys the release knows: a release with
16 keys always writes the wide header.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from inferencecache.simulation.engine_event import (
    ClearedBlocks,
    EngineEvent,
    RemovedBlocks,
    StoredBlocks,
)
from inferencecache.simulation.engine_layout import EngineLayout, HashForm

Packable = int | str | bytes | None | list["Packable"] | dict[str, "Packable"]

_WIDE_MAP_KEYS: Final = 16
_SIGN_BIT: Final = 2**63
_SGLANG_SALT_WIDTH: Final = 8
_DIGEST_BYTES: Final = {HashForm.BYTES_8: 8, HashForm.BYTES_16: 16, HashForm.BYTES_32: 32}

_encode = msgspec.msgpack.Encoder().encode


def encode_batch(
    events: Sequence[EngineEvent], layout: EngineLayout, hash_form: HashForm, rank: int, ts: float
) -> bytes:
    """Return the payload of one message.

    Args:
        events: What happened, in order.
        layout: The release's form.
        hash_form: How labels are written.
        rank: Data-parallel rank, for envelopes that carry it.
        ts: The engine's time in seconds since 1970.
    """
    packed = [_event(event, layout, hash_form) for event in events]
    envelope: list[object] = [ts, packed, rank]
    return _encode(envelope[: layout.envelope_width])


def _event(event: EngineEvent, layout: EngineLayout, hash_form: HashForm) -> msgspec.Raw:
    if isinstance(event, StoredBlocks):
        return _stored(event, layout, hash_form)
    if isinstance(event, RemovedBlocks):
        return _removed(event, layout, hash_form)
    name = "AllBlocksCleared"
    return msgspec.Raw(_encode({"type": name} if layout.uses_maps else [name]))


def _stored(event: StoredBlocks, layout: EngineLayout, hash_form: HashForm) -> msgspec.Raw:
    fields: dict[str, Packable] = {
        "type": "BlockStored",
        "block_hashes": [_label(label, hash_form) for label in event.labels],
        "parent_block_hash": None if event.parent is None else _label(event.parent, hash_form),
        "token_ids": list(event.tokens),
        "block_size": event.block_size_tokens,
        "lora_id": None if layout.is_sglang else event.lora_id,
        "medium": event.medium,
    }
    if layout.uses_maps:
        return _map({**fields, **_map_tail(event, layout)}, layout)
    elements = [*fields.values(), *_array_tail(event, layout)]
    width = layout.stored_width
    if layout.is_sglang and event.salt and layout.stored_width >= _SGLANG_SALT_WIDTH - 1:
        width = _SGLANG_SALT_WIDTH
    return msgspec.Raw(_encode(elements[:width]))


def _array_tail(event: StoredBlocks, layout: EngineLayout) -> list[Packable]:
    """Return an array's elements from the eighth on."""
    if layout.is_sglang:
        return [{"cache_salt": event.salt}]
    return [event.lora_name or None, _extra_keys(event), event.group, event.kind, None]


def _map_tail(event: StoredBlocks, layout: EngineLayout) -> dict[str, Packable]:
    """Return the keys a map has beyond those of the oldest array."""
    if layout.is_sglang:
        values: dict[str, Packable] = {
            "cache_salt": event.salt or None,
            "lora_name": event.lora_name or None,
        }
    else:
        values = {
            "extra_keys": _extra_keys(event),
            "group_idx": event.group,
            "kv_cache_spec_kind": event.kind,
            "locality": "LOCAL",
        }
    always: dict[str, Packable] = {} if layout.is_sglang else {"lora_name": event.lora_name or None}
    return always | {
        key: value
        for key, value in values.items()
        if key in layout.optional_keys and value is not None
    }


def _extra_keys(event: StoredBlocks) -> Packable:
    """Return what went into each block's hash beside its tokens; nil if nothing did."""
    first: list[Packable] = [event.salt] if event.salt and event.parent is None else []
    every: list[Packable] = [event.lora_name] if event.lora_name else []
    if not first and not every:
        return None
    items: list[Packable] = [[*every, *first]]
    items += [list(every) or None for _ in event.labels[1:]]
    return items


def _removed(event: RemovedBlocks, layout: EngineLayout, hash_form: HashForm) -> msgspec.Raw:
    labels: Packable = [_label(label, hash_form) for label in event.labels]
    if not layout.uses_maps:
        elements: list[Packable] = ["BlockRemoved", labels, event.medium, event.group]
        return msgspec.Raw(_encode(elements[: layout.removed_width]))
    fields: dict[str, Packable] = {
        "type": "BlockRemoved",
        "block_hashes": labels,
        "medium": event.medium,
    }
    if layout.has_groups:
        fields["group_idx"] = event.group
    return msgspec.Raw(_encode(fields))


def _map(fields: dict[str, Packable], layout: EngineLayout) -> msgspec.Raw:
    """Return *fields* with the header of a struct that knows ``layout.map_keys`` keys."""
    if layout.map_keys < _WIDE_MAP_KEYS:
        return msgspec.Raw(_encode(fields))
    body = b"".join(_encode(key) + _encode(value) for key, value in fields.items())
    return msgspec.Raw(b"\xde" + len(fields).to_bytes(2, "big") + body)


def _label(label: int, form: HashForm) -> int | bytes:
    """Return a label as *form* writes it; a digest ends in the label's 8 bytes."""
    if form is HashForm.UNSIGNED:
        return label
    if form is HashForm.SIGNED:
        return label - 2 * _SIGN_BIT if label >= _SIGN_BIT else label
    return label.to_bytes(_DIGEST_BYTES[form], "big")


CLEARED: Final = ClearedBlocks()
"""The only value there is of its kind."""
