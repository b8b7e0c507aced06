"""Which release an engine's events look like, told from their shape alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from inferencecache.errors import MalformedEventError
from inferencecache.events import BlockStored, decode_batch
from inferencecache.settings.producer import DecodeSettings

_SHAPE_ERRORS: Final = (msgspec.DecodeError, ValueError, RecursionError, IndexError)

_OLD_ENVELOPE: Final = 2
_WIDE_MAP: Final = frozenset({0xDE, 0xDF})
_SGLANG_METADATA: Final = 7
_ARRAYS: Final = {
    5: "vLLM 0.9 or SGLang 0.4",
    6: "vLLM 0.9.0 to 0.10.1 or SGLang 0.4.6 to 0.5.8",
    7: "vLLM 0.10.2 to 0.13 or SGLang 0.5.9 to 0.5.19",
    8: "vLLM 0.14 to 0.16",
    9: "vLLM 0.17 to 0.19",
    10: "vLLM 0.20 or 0.21",
    12: "vLLM 0.22 or 0.23",
}
_VLLM_MAPS: Final = (
    ("session_id", "vLLM 0.30 or later"),
    ("ownership", "vLLM 0.29 or later"),
    ("locality", "vLLM 0.26 or later"),
)
_FIELD_NAMES: Final = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_ELEMENTS: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])
_TEXT: Final = msgspec.msgpack.Decoder(str)

_ROOT_OF_SGLANG_0_4: Final = 5_740_354_900_026_072_187
"""What the oldest SGLang names as parent of a prompt's start."""


@dataclass(slots=True, kw_only=True)
class Shape:
    """What payloads look like.

    Attributes:
        batches: Payloads read.
        unreadable: Payloads that are no batch.
        stores: Stores with tokens.
        faults: Events that cannot be used, by cause.
        forms: Descriptions of the stores' forms.
        block_sizes: Tokens per block, of stores with tokens.
        ranks: Ranks named in envelopes.
        has_rootless_sglang: Whether prompts start below the parent of the oldest SGLang.
    """

    batches: int = 0
    unreadable: int = 0
    stores: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    forms: set[str] = field(default_factory=set)
    block_sizes: set[int] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)
    has_rootless_sglang: bool = False


def shape_of(payloads: Sequence[bytes], settings: DecodeSettings, *, has_topic: bool) -> Shape:
    """Return what *payloads* look like.

    Args:
        payloads: Event batches.
        settings: Limits of decoding.
        has_topic: Whether a replay carried the topic, which only newer releases do.
    """
    shape = Shape()
    for payload in payloads:
        _add(shape, payload, settings, has_topic=has_topic)
    return shape


def has_store(payload: bytes, settings: DecodeSettings) -> bool:
    """Tell whether *payload* stores blocks that can become keys."""
    try:
        events = decode_batch(payload, settings).events
    except MalformedEventError:
        return False
    return any(isinstance(event, BlockStored) and event.packed_tokens for event in events)


def _add(shape: Shape, payload: bytes, settings: DecodeSettings, *, has_topic: bool) -> None:
    try:
        batch = decode_batch(payload, settings)
    except MalformedEventError:
        shape.unreadable += 1
        return
    shape.batches += 1
    for cause, times in batch.faults.items():
        shape.faults[cause] = shape.faults.get(cause, 0) + times
    if batch.rank is not None:
        shape.ranks.add(batch.rank)
    for event in batch.events:
        if isinstance(event, BlockStored) and event.packed_tokens:
            shape.stores += 1
            shape.block_sizes.add(event.block_size)
            if event.parent_block_hash == _ROOT_OF_SGLANG_0_4:
                shape.has_rootless_sglang = True
    shape.forms.update(_forms(payload, has_topic=has_topic))


def _forms(payload: bytes, *, has_topic: bool) -> Iterator[str]:
    """Yield the form of each store in a payload; nothing for shapes that are not looked into."""
    try:
        envelope = _ELEMENTS.decode(payload)
        events = [bytes(event) for event in _ELEMENTS.decode(envelope[1])]
    except _SHAPE_ERRORS:
        return
    for event in events:
        try:
            form = _form(event, len(envelope), has_topic=has_topic)
        except _SHAPE_ERRORS:
            continue
        if form:
            yield form


def _form(event: bytes, envelope_width: int, *, has_topic: bool) -> str:
    try:
        elements = _ELEMENTS.decode(event)
    except _SHAPE_ERRORS:
        return _map_form(event, has_topic=has_topic)
    if _TEXT.decode(elements[0]) != "BlockStored":
        return ""
    width = len(elements)
    is_metadata = width > _SGLANG_METADATA and _is_map(bytes(elements[_SGLANG_METADATA]))
    release = "SGLang 0.5.18 or 0.5.19" if is_metadata else _ARRAYS.get(width, "a release unknown")
    if envelope_width == _OLD_ENVELOPE:
        release = "vLLM 0.9.0 or SGLang 0.4.6"
    return f"arrays of {width}: {release}"


def _map_form(event: bytes, *, has_topic: bool) -> str:
    fields = _FIELD_NAMES.decode(event)
    if _TEXT.decode(fields["type"]) != "BlockStored":
        return ""
    if "cache_salt" in fields or "lora_name" not in fields:
        return f"maps: SGLang {'0.5.22' if has_topic else '0.5.20'} or later"
    if event[0] in _WIDE_MAP:
        return "maps with a wide header: vLLM 0.33 or later"
    found = next((release for name, release in _VLLM_MAPS if name in fields), "")
    return f"maps: {found or ('vLLM 0.26' if has_topic else 'vLLM 0.24') + ' or later'}"


def _is_map(packed: bytes) -> bool:
    return packed[:1] != b"" and (packed[0] & 0xF0 == 0x80 or packed[0] in _WIDE_MAP)  # noqa: PLR2004 - MessagePack's mark of a short map
