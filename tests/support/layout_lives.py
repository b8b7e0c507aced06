"""One short life of an engine's cache in the layout of every release, byte by byte.

Nothing here is shared with the fake engine. The life, in blocks of 16 tokens::

    store  1 2 (root)   store 3 after 2   store 4 after 1   store 5 6 (root)
    remove 3            remove 6          store 7 after 5, of another prompt's tail
"""

from collections.abc import Callable
from dataclasses import dataclass

from engine_payloads import array_remove, array_store, batch, map_remove, map_store, old_batch
from msgpack_bytes import NIL, array, binary, integer, integers, mapping, text
from xxhash import xxh3_64_intdigest

BLOCK = 16
_SEED = 1337

Makers = dict[str, Callable[..., bytes]]
"""The ``store`` and ``remove`` of a release."""


def block(number: int) -> list[int]:
    """Return the tokens of block *number*, of every width that msgpack has for them."""
    return [(number * 40_503 + position * position * 977) % 151_936 for position in range(BLOCK)]


def independent_keys(*blocks: int) -> list[int]:
    """Return the keys of a prompt of *blocks*, computed from the published definition alone."""
    keys: list[int] = []
    for number in blocks:
        packed = b"".join(token.to_bytes(4, "little") for token in block(number))
        content = xxh3_64_intdigest(packed, seed=_SEED)
        if keys:
            pair = keys[-1].to_bytes(8, "little") + content.to_bytes(8, "little")
            content = xxh3_64_intdigest(pair, seed=_SEED)
        keys.append(content)
    return keys


HELD = {*independent_keys(1, 2), independent_keys(1, 4)[1], *independent_keys(5, 7)}
"""What the index has to hold after the life."""


def labels(kind: str) -> dict[int, bytes]:
    """Return how the engine names its blocks on the wire, packed.

    Args:
        kind: ``signed`` or ``unsigned`` integers, or the ``16`` or ``32`` bytes of a digest.
    """
    values = {number: (number * 0x9E37_79B9_7F4A_7C15) % 2**64 for number in range(1, 8)}
    if kind == "unsigned":
        return {number: integer(value) for number, value in values.items()}
    if kind == "signed":
        return {
            number: integer(value - 2**64 if value >= 2**63 else value)
            for number, value in values.items()
        }
    width = int(kind)
    return {
        number: binary(bytes([number]) * (width - 8) + value.to_bytes(8, "big"))
        for number, value in values.items()
    }


@dataclass(frozen=True, slots=True)
class Release:
    """How a release sends events.

    Attributes:
        name: What it is called.
        store: Makes a BlockStored with placeholders for hashes and parent.
        remove: Makes a BlockRemoved likewise.
        wrap: Makes the envelope.
        label_kind: See :func:`labels`.
        new_replay: Replays carry the topic.
    """

    name: str
    store: Callable[[list[int], bytes, bytes], bytes]
    remove: Callable[[bytes], bytes]
    wrap: Callable[..., bytes]
    label_kind: str
    new_replay: bool

    def payloads(self) -> list[bytes]:
        """Return the life, one event per message and two in the last."""
        names = labels(self.label_kind)

        def store(numbers: list[int], parent: int | None) -> bytes:
            tokens = [token for number in numbers for token in block(number)]
            hashes = array([names[number] for number in numbers])
            return self.store(tokens, hashes, NIL if parent is None else names[parent])

        def remove(number: int) -> bytes:
            return self.remove(array([names[number]]))

        events = [store([1, 2], None), store([3], 2), store([4], 1), store([5, 6], None)]
        alone = [self.wrap(event) for event in [*events, remove(3), remove(6)]]
        return [*alone, self.wrap(store([7], 5), store([1, 2], None))]


def _arrays(width: int, removal_width: int, tail: dict[int, bytes] | None = None) -> Makers:
    def store(tokens: list[int], hashes: bytes, parent: bytes) -> bytes:
        return array_store(width, [], tokens, tail={1: hashes, 2: parent, **(tail or {})})

    def remove(hashes: bytes) -> bytes:
        return _with_hashes(array_remove([], width=removal_width), hashes)

    return {"store": store, "remove": remove}


def _maps(header: int = 0, removal: dict[str, bytes] | None = None, **more: bytes) -> Makers:
    def store(tokens: list[int], hashes: bytes, parent: bytes) -> bytes:
        names = {"block_hashes": hashes, "parent_block_hash": parent}
        return map_store([], tokens, header=header, **names, **more)

    def remove(hashes: bytes) -> bytes:
        return map_remove([], **{"block_hashes": hashes, **(removal or {})})

    return {"store": store, "remove": remove}


def _with_hashes(event: bytes, hashes: bytes) -> bytes:
    """Return an array event with *hashes* in the place of its empty list."""
    head = event[:1] + text("BlockRemoved")
    assert event.startswith(head + integers([]))
    return head + hashes + event[len(head) + 1 :]


def releases() -> list[Release]:
    """Return every release whose layout differs from the one before."""
    group = {"group_idx": integer(0)}
    full = {**group, "kv_cache_spec_kind": text("full_attention")}
    local = {**full, "locality": text("LOCAL")}
    owned = {**local, "ownership": NIL}
    session = {**owned, "session_id": text("s")}
    newest = {**session, "kv_cache_spec_sliding_window": NIL, "lookahead_token_ids": NIL}
    full_tail = {9: integer(0), 10: text("full_attention")}
    rows: list[tuple[str, Makers, Callable[..., bytes], str, bool]] = [
        ("vllm-0.9.0", _arrays(6, 2), old_batch, "signed", False),
        ("vllm-0.9.1", _arrays(6, 2), batch, "signed", False),
        ("vllm-0.10.2", _arrays(7, 3), batch, "unsigned", False),
        ("vllm-0.10.2 digests", _arrays(7, 3), batch, "32", False),
        ("vllm-0.14", _arrays(8, 3), batch, "unsigned", False),
        ("vllm-0.16 xxhash digests", _arrays(8, 3), batch, "16", False),
        ("vllm-0.17", _arrays(9, 3, {8: NIL}), batch, "unsigned", False),
        ("vllm-0.20", _arrays(10, 4, {9: integer(0)}), batch, "unsigned", False),
        ("vllm-0.22", _arrays(12, 4, full_tail), batch, "unsigned", False),
        ("vllm-0.24", _maps(removal=group, **full), batch, "unsigned", False),
        ("vllm-0.26", _maps(removal=group, **local), batch, "unsigned", True),
        ("vllm-0.29", _maps(removal=group, **owned), batch, "32", True),
        ("vllm-0.30", _maps(removal=group, **session), batch, "unsigned", True),
        ("vllm-0.33", _maps(header=16, removal=group, **newest), batch, "unsigned", True),
        ("vllm-0.33 digests", _maps(header=16, removal=group, **newest), batch, "32", True),
        ("sglang-0.5.6", _arrays(6, 2), batch, "signed", False),
        ("sglang-0.5.9", _arrays(7, 3), batch, "signed", False),
        (
            "sglang-0.5.18",
            _arrays(8, 3, {7: mapping({"cache_salt": NIL})}),
            batch,
            "signed",
            False,
        ),
        ("sglang-0.5.20", _maps(cache_salt=NIL, session_id=NIL), batch, "signed", False),
        (
            "sglang-0.5.22",
            _maps(cache_salt=NIL, session_id=NIL, lora_name=NIL),
            batch,
            "signed",
            True,
        ),
    ]
    return [
        Release(name=name, wrap=wrap, label_kind=kind, new_replay=new_replay, **makers)
        for name, makers, wrap, kind, new_replay in rows
    ]
