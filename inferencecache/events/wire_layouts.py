"""The layouts in which engines send events, as msgspec types; their behaviour is in ``decode``.

Two families exist. Arrays put the tag first and grow at the right end from release to release, so
a short one leaves the last fields at their defaults and a long one has extra elements that are not
looked at. Maps carry the tag under ``type`` and leave defaults out. Header widths do not matter
here: msgspec reads every one of them.

Fields whose shape differs between engines are kept raw and looked at only when present. The range
of token ids is left to whoever packs them, which tells it for nothing; here it would cost a third
of the time.
"""

from typing import Annotated, Any

import msgspec

TOKEN_ID_MAX = 2**32 - 1
BLOCK_SIZE_MAX = 65_536
GROUP_MAX = 65_535
RANK_MAX = 65_535
TEXT_CHARS_MAX = 1_024

NIL = msgspec.Raw(b"\xc0")

WireHash = int | bytes
Token = Annotated[int, msgspec.Meta(ge=0, le=TOKEN_ID_MAX)]
BlockSize = Annotated[int, msgspec.Meta(ge=0, le=BLOCK_SIZE_MAX)]
Text = Annotated[str, msgspec.Meta(max_length=TEXT_CHARS_MAX)]
GroupIndex = Annotated[int, msgspec.Meta(ge=0, le=GROUP_MAX)]


class MapStored(msgspec.Struct, tag_field="type", tag="BlockStored", gc=False):
    """A store sent as a map."""

    block_hashes: list[WireHash]
    token_ids: list[int] | None
    block_size: BlockSize
    parent_block_hash: WireHash | None = None
    lora_id: int | None = None
    lora_name: Text | None = None
    medium: Text | None = None
    extra_keys: msgspec.Raw = NIL
    group_idx: GroupIndex | None = None
    kv_cache_spec_kind: Text | None = None
    locality: Text | None = None
    cache_salt: msgspec.Raw = NIL
    mm_keys: msgspec.Raw = NIL


class MapStoredText(msgspec.Struct, tag_field="type", tag="BlockStored", gc=False):
    """A store whose tokens are partly texts; no token id describes such content."""

    block_hashes: list[WireHash]
    token_ids: list[Token | str]
    block_size: BlockSize
    parent_block_hash: WireHash | None = None
    lora_id: int | None = None
    lora_name: Text | None = None
    medium: Text | None = None
    group_idx: GroupIndex | None = None
    kv_cache_spec_kind: Text | None = None
    locality: Text | None = None


class MapRemoved(msgspec.Struct, tag_field="type", tag="BlockRemoved", gc=False):
    """A removal sent as a map."""

    block_hashes: list[WireHash]
    medium: Text | None = None
    group_idx: GroupIndex | None = None
    locality: Text | None = None


class MapCleared(msgspec.Struct, tag_field="type", tag="AllBlocksCleared"):
    """A clear sent as a map."""


class ArrayStored(msgspec.Struct, array_like=True, tag="BlockStored", gc=False):
    """A store sent as an array of at least five elements.

    ``adapter`` is vLLM's ``lora_name`` or, in two SGLang releases, a map of metadata.
    """

    block_hashes: list[WireHash]
    parent_block_hash: WireHash | None
    token_ids: list[int] | None
    block_size: BlockSize
    lora_id: int | None = None
    medium: Text | None = None
    adapter: Text | dict[str, Any] | None = None
    extra_keys: msgspec.Raw = NIL
    group_idx: GroupIndex | None = None
    kv_cache_spec_kind: Text | None = None


class ArrayRemoved(msgspec.Struct, array_like=True, tag="BlockRemoved", gc=False):
    """A removal sent as an array of at least two elements."""

    block_hashes: list[WireHash]
    medium: Text | None = None
    group_idx: GroupIndex | None = None


class ArrayCleared(msgspec.Struct, array_like=True, tag="AllBlocksCleared"):
    """A clear sent as an array."""


MapEvent = MapStored | MapRemoved | MapCleared
ArrayEvent = ArrayStored | ArrayRemoved | ArrayCleared


class MapBatch(msgspec.Struct, array_like=True):
    """An envelope that holds maps only."""

    ts: float
    events: list[MapEvent]
    rank: int | None = None


class ArrayBatch(msgspec.Struct, array_like=True):
    """An envelope that holds arrays only."""

    ts: float
    events: list[ArrayEvent]
    rank: int | None = None


class MapEnvelope(msgspec.Struct):
    """An envelope that is a map itself."""

    ts: msgspec.Raw
    events: msgspec.Raw
    data_parallel_rank: msgspec.Raw = NIL


class MapTag(msgspec.Struct):
    """Only the tag of a map event."""

    type: str


class ArrayTag(msgspec.Struct, array_like=True):
    """Only the tag of an array event."""

    type: str


ARRAY_FIELDS: dict[str, tuple[str, ...]] = {
    "BlockStored": (
        "type",
        "block_hashes",
        "parent_block_hash",
        "token_ids",
        "block_size",
        "lora_id",
        "medium",
        "lora_name",
        "extra_keys",
        "group_idx",
        "kv_cache_spec_kind",
    ),
    "BlockRemoved": ("type", "block_hashes", "medium", "group_idx"),
    "AllBlocksCleared": ("type",),
}
"""Names of an array's elements, by tag."""

KNOWN_TAGS = frozenset(ARRAY_FIELDS)
STORED_TAG = "BlockStored"
