"""Write or check the fingerprint vectors next to this file.

``python golden_vectors/generate.py`` writes ``fingerprint.json``; with ``--check`` it recomputes
every hash, compares and exits 1 on a difference. It needs the package ``xxhash`` and nothing of
`inferencecache`: it follows the page, ``README.md``, one token at a time, so that a mistake in the
product cannot repeat itself here.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import xxhash

VECTORS_FILE = Path(__file__).with_name("fingerprint.json")
SEED = 1337
UINT32_MAX = 2**32 - 1
UINT64_MAX = 2**64 - 1
BLOCK_SIZES = (1, 4, 16, 32, 60, 61, 64, 128, 256, 1056)
"""60 tokens are 240 bytes, the longest input of XXH3's short form; 61 take the long form."""


class Case(NamedTuple):
    """One input."""

    name: str
    token_ids: list[int]
    block_size_tokens: int
    parent: int | None = None


def spread(count: int, salt: int = 0) -> list[int]:
    """Return *count* ids that look like a vocabulary's, the same on every machine."""
    return [
        ((position + salt) * 2_246_822_519 + 374_761_393) % 128_256 for position in range(count)
    ]


def cases() -> Iterator[Case]:
    """Yield every input, in the file's order."""
    yield Case("worked-example", [1, 2, 3, 4, 5], 2)
    yield Case("worked-example-with-parent", [1, 2, 3, 4, 5], 2, 0xDEADBEEF)
    yield Case("one-full-block", list(range(200, 216)), 16)
    yield Case("four-blocks", list(range(1000, 1064)), 16)
    yield Case("partial-tail-dropped", spread(39), 16)
    yield Case("block-size-one", spread(5), 1)
    yield Case("equal-blocks-differ-by-position", [7] * 48, 16)
    for size in BLOCK_SIZES:
        yield Case(f"block-{size}", spread(2 * size + size // 2, salt=size), size)
        yield Case(f"block-{size}-with-parent", spread(2 * size), size, 11_400_714_819_323_198_485)
    yield from extremes()
    yield from empty()


def extremes() -> Iterator[Case]:
    """Yield the smallest and largest ids and parents."""
    yield Case("all-zero-ids", [0] * 32, 16)
    yield Case("all-largest-ids", [UINT32_MAX] * 32, 16)
    yield Case("zero-and-largest-ids", [0, UINT32_MAX] * 16, 16)
    yield Case("zero-and-largest-ids-long-block", [0, UINT32_MAX] * 64, 64)
    yield Case("byte-order-of-ids", [0x01020304, 0xFEFF0000, 0x80000000, 0x0000FFFE], 4)
    yield Case("parent-zero-is-a-parent", spread(16), 16, 0)
    yield Case("parent-largest", spread(16), 16, UINT64_MAX)
    yield Case("parent-one", spread(32), 16, 1)


def empty() -> Iterator[Case]:
    """Yield inputs that have no full block."""
    yield Case("no-ids", [], 16)
    yield Case("one-id-short", spread(15), 16)
    yield Case("one-id-short-with-parent", spread(15), 16, 42)
    yield Case("block-size-zero", spread(16), 0)
    yield Case("block-size-negative", spread(16), -16)


def digest(data: bytes) -> int:
    """Return the hash that everything is made of."""
    return xxhash.xxh3_64_intdigest(data, SEED)


def content_hashes(case: Case) -> list[int]:
    """Hash each full block on its own."""
    size = case.block_size_tokens
    if size <= 0:
        return []
    starts = range(0, len(case.token_ids) - size + 1, size)
    blocks = (case.token_ids[start : start + size] for start in starts)
    return [digest(b"".join(token.to_bytes(4, "little") for token in block)) for block in blocks]


def prefix_hashes(contents: list[int], parent: int | None) -> list[int]:
    """Chain the content hashes from *parent* on."""
    hashes: list[int] = []
    previous = parent
    for content in contents:
        if previous is None:
            previous = content
        else:
            previous = digest(previous.to_bytes(8, "little") + content.to_bytes(8, "little"))
        hashes.append(previous)
    return hashes


def vector(case: Case) -> dict[str, object]:
    """Return one entry of the file."""
    contents = content_hashes(case)
    prefixes = prefix_hashes(contents, case.parent)
    return {
        "name": case.name,
        "block_size_tokens": case.block_size_tokens,
        "parent": None if case.parent is None else str(case.parent),
        "token_ids": case.token_ids,
        "content_hashes": [str(value) for value in contents],
        "prefix_hashes": [str(value) for value in prefixes],
        "wire_keys_hex": [value.to_bytes(8, "big").hex() for value in prefixes],
    }


def render() -> str:
    """Return the file's text: one line per list, so that differences read well."""
    head = {
        "algorithm": "XXH3-64",
        "seed": SEED,
        "numbers": "64-bit hashes are decimal strings; JSON numbers lose bits above 2**53",
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    blocks = []
    for case in cases():
        fields = [
            f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in vector(case).items()
        ]
        blocks.append("  {\n" + ",\n".join(fields) + "\n  }")
    return "{\n" + "\n".join(lines) + '\n "vectors": [\n' + ",\n".join(blocks) + "\n ]\n}\n"


def differences(stored_text: str) -> Iterator[str]:
    """Yield a line per vector of *stored_text* that is not what we compute."""
    try:
        stored = {entry["name"]: entry for entry in json.loads(stored_text)["vectors"]}
    except (ValueError, KeyError, TypeError) as error:
        yield f"the file cannot be read as vectors: {error!r}"
        return
    for case in cases():
        wanted, found = vector(case), stored.pop(case.name, None)
        if found is None:
            yield f"{case.name}: missing"
            continue
        for key, value in wanted.items():
            if found.get(key) != value:
                yield f"{case.name}: {key} differs: file {found.get(key)!r}, computed {value!r}"
    for name in stored:
        yield f"{name}: not one of ours"


def check() -> int:
    """Compare the file with what we compute; return the exit code."""
    stored = VECTORS_FILE.read_text(encoding="utf-8") if VECTORS_FILE.exists() else "null"
    found = list(differences(stored))
    if not found and stored != render():
        found = ["the vectors agree but the text around them differs; write the file again"]
    for line in found:
        print(f"{VECTORS_FILE.name}: {line[:400]}", file=sys.stderr)
    if found:
        return 1
    print(f"{VECTORS_FILE.name}: {sum(1 for _ in cases())} vectors agree")
    return 0


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, change nothing")
    if parser.parse_args().check:
        return check()
    VECTORS_FILE.write_text(render(), encoding="utf-8")
    print(f"wrote {VECTORS_FILE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
