"""Event payloads in the layout of each engine release, assembled from the documented layouts."""

from collections.abc import Callable

from msgpack_bytes import NIL, array, binary, integer, integers, mapping, real, text

HASH_A = 15760518052499183552
T16 = [
    *(151644, 872, 198, 9064, 374, 279, 6722, 315),
    *(5616, 30, 151645, 198, 151644, 77091, 198, 151667),
]
T16_KEY = 7652252100776996844

Store = Callable[..., bytes]


def batch(*events: bytes, ts: float = 1_700_000_000.0, rank: int | None = 0) -> bytes:
    """Return an envelope of three elements, as sent since vLLM 0.9.1."""
    return array([real(ts), array(list(events)), NIL if rank is None else integer(rank)])


def old_batch(*events: bytes, ts: float = 1_700_000_000.0) -> bytes:
    """Return an envelope of two elements, as sent by vLLM 0.9.0 and SGLang 0.4.6."""
    return array([real(ts), array(list(events))])


def array_store(
    width: int,
    hashes: list[int],
    tokens: list[int],
    *,
    parent: int | None = None,
    size: int = 16,
    tail: dict[int, bytes] | None = None,
    header: int = 0,
) -> bytes:
    """Return a BlockStored array of *width* elements; later ones are nil unless in *tail*."""
    known = [
        text("BlockStored"),
        integers(hashes),
        NIL if parent is None else integer(parent),
        integers(tokens),
        integer(size),
        NIL,
        text("GPU"),
    ]
    elements = (known + [NIL] * 5)[:width]
    for position, value in (tail or {}).items():
        elements[position] = value
    return array(elements, header)


def map_store(
    hashes: list[int],
    tokens: list[int],
    *,
    parent: int | None = None,
    size: int = 16,
    header: int = 0,
    **more: bytes,
) -> bytes:
    """Return a BlockStored map; *more* adds or replaces fields, already packed."""
    fields = {
        "type": text("BlockStored"),
        "block_hashes": integers(hashes),
        "parent_block_hash": NIL if parent is None else integer(parent),
        "token_ids": integers(tokens),
        "block_size": integer(size),
        "lora_id": NIL,
        "medium": text("GPU"),
        "lora_name": NIL,
    }
    return mapping({**fields, **more}, header)


def array_remove(
    hashes: list[int], *, width: int = 2, medium: str = "GPU", group_idx: int | None = None
) -> bytes:
    """Return a BlockRemoved array of two to four elements."""
    group = NIL if group_idx is None else integer(group_idx)
    return array([text("BlockRemoved"), integers(hashes), text(medium), group][:width])


def map_remove(hashes: list[int], *, medium: str = "GPU", **more: bytes) -> bytes:
    """Return a BlockRemoved map."""
    fields = {
        "type": text("BlockRemoved"),
        "block_hashes": integers(hashes),
        "medium": text(medium),
    }
    return mapping({**fields, **more})


def map_clear() -> bytes:
    """Return an AllBlocksCleared map."""
    return mapping({"type": text("AllBlocksCleared")})


def array_clear() -> bytes:
    """Return an AllBlocksCleared array."""
    return array([text("AllBlocksCleared")])


def layouts() -> dict[str, bytes]:
    """Return one root block, T16 under HASH_A, in every layout in use."""
    hashes, tokens = [HASH_A], T16
    last_map = {
        "extra_keys": NIL,
        "group_idx": integer(0),
        "kv_cache_spec_kind": text("full_attention"),
    }
    newest = {**last_map, "locality": text("LOCAL"), "ownership": NIL, "session_id": NIL}
    newest |= {"lookahead_token_ids": NIL, "kv_cache_spec_sliding_window": NIL}
    salt_free = {"cache_salt": NIL, "session_id": NIL}
    moved = {"block_hashes": integers(hashes), **last_map, "type": text("BlockStored")}
    moved |= {"token_ids": integers(tokens), "block_size": integer(16), "parent_block_hash": NIL}
    return {
        "vllm-0.9.0 array 6": old_batch(array_store(6, hashes, tokens)),
        "vllm-0.9.1 array 6": batch(array_store(6, hashes, tokens)),
        "vllm-0.10.2 array 7": batch(array_store(7, hashes, tokens)),
        "vllm-0.14 array 8": batch(array_store(8, hashes, tokens)),
        "vllm-0.17 array 9": batch(array_store(9, hashes, tokens, tail={8: array([NIL])})),
        "vllm-0.20 array 10": batch(array_store(10, hashes, tokens, tail={9: integer(0)})),
        "vllm-0.22 array 12": batch(
            array_store(12, hashes, tokens, tail={9: integer(0), 10: text("full_attention")})
        ),
        "array 5, the least": batch(array_store(5, hashes, tokens)),
        "array header dc": batch(array_store(12, hashes, tokens, header=16)),
        "array header dd": batch(array_store(7, hashes, tokens, header=32)),
        "vllm-0.24 map 8x": batch(map_store(hashes, tokens)),
        "vllm-0.26 map": batch(map_store(hashes, tokens, **last_map, locality=text("LOCAL"))),
        "vllm-0.33 map de": batch(map_store(hashes, tokens, header=16, **newest)),
        "map header de, few keys": batch(map_store(hashes, tokens, header=16)),
        "map header df": batch(map_store(hashes, tokens, header=32)),
        "map, type not first": batch(mapping(moved)),
        "sglang-0.4.7 array 6": batch(array_store(6, hashes, tokens)),
        "sglang-0.5.9 array 7": batch(array_store(7, hashes, tokens)),
        "sglang-0.5.18 array 8, empty map": batch(
            array_store(8, hashes, tokens, tail={7: mapping({"cache_salt": NIL})})
        ),
        "sglang-0.5.20 map": batch(map_store(hashes, tokens, **salt_free)),
        "llm-d, event in bin": batch(binary(map_store(hashes, tokens))),
        "map envelope": mapping(
            {
                "ts": real(1_700_000_000.0),
                "events": array([map_store(hashes, tokens)]),
                "data_parallel_rank": integer(0),
            }
        ),
        "integer time": array([integer(1_700_000_000), array([map_store(hashes, tokens)])]),
        "mixed layouts": batch(
            array_store(12, hashes, tokens), map_store(hashes, tokens), array_remove(hashes)
        ),
    }
