"""Every stored fingerprint vector agrees with what the package computes."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inferencecache.fingerprint import chain, chain_slices, content_hashes, prefix_hashes

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).with_name("data")
GENERATOR = ROOT / "golden_vectors" / "generate.py"


def load(path: Path) -> dict[str, Any]:
    """Read one file of vectors."""
    return json.loads(path.read_text(encoding="utf-8"))


def named(vectors: list[dict[str, Any]], field: str = "name") -> list[Any]:
    """Turn vectors into parameters whose test ids say which one failed."""
    return [pytest.param(vector, id=str(vector[field])) for vector in vectors]


OURS = load(ROOT / "golden_vectors" / "fingerprint.json")["vectors"]
SHARED = load(DATA / "golden_vectors_reference.json")["vectors"]
LONG_BLOCKS = load(DATA / "xxh3_long_block_vectors.json")


@pytest.mark.parametrize("vector", named(OURS))
def test_our_vectors_agree(vector: dict[str, Any]) -> None:
    """Content hashes, prefix hashes and wire keys equal the published file, in slices as well."""
    parent = None if vector["parent"] is None else int(vector["parent"])
    tokens, size = vector["token_ids"], vector["block_size_tokens"]

    assert [str(value) for value in content_hashes(tokens, size)] == vector["content_hashes"]
    assert [str(value) for value in prefix_hashes(tokens, size, parent)] == vector["prefix_hashes"]
    assert [key.hex() for key in chain(tokens, size, parent)] == vector["wire_keys_hex"]
    sliced = [key.hex() for keys in chain_slices(tokens, size, 1, parent) for key in keys]
    assert sliced == vector["wire_keys_hex"]


def test_our_vectors_cover_both_forms_of_the_hash() -> None:
    """Blocks of 240 bytes and of 244 bytes are both there, with and without a parent."""
    seen = {(entry["block_size_tokens"], entry["parent"] is None) for entry in OURS}

    assert {(60, True), (60, False), (61, True), (61, False)} <= seen


@pytest.mark.parametrize("vector", named(SHARED))
def test_vectors_shared_with_other_implementations_agree(vector: dict[str, Any]) -> None:
    """The frozen vectors that other languages assert against hold here too."""
    parent = vector["parent_prefix"]
    parent = None if parent is None else int(parent["dec"])
    tokens, size = vector["tokens"], vector["block_size"]

    contents = [str(value) for value in content_hashes(tokens, size)]
    prefixes = [str(value) for value in prefix_hashes(tokens, size, parent)]
    keys = [base64.b64encode(key).decode() for key in chain(tokens, size, parent)]

    assert contents == [entry["dec"] for entry in vector["content_hashes"]]
    assert prefixes == [entry["dec"] for entry in vector["prefix_hashes"]]
    assert keys == [entry["b64be"] for entry in vector["prefix_hashes"]]


@pytest.mark.parametrize("vector", named(LONG_BLOCKS["vectors"], "block_size"))
def test_blocks_around_240_bytes_agree(vector: dict[str, Any]) -> None:
    """The seed counts on both sides of the length where XXH3 changes its form."""
    size = vector["block_size"]
    tokens = [(i * 2654435761) % 151936 for i in range(2 * size + 3)]

    assert [str(value) for value in prefix_hashes(tokens, size)] == vector["prefix_hashes_dec"]
    keys = [base64.b64encode(key).decode() for key in chain(tokens, size)]
    assert keys == vector["prefix_hashes_b64be"]
    assert keys[0] != vector["wrong_if_seed_dropped_on_long_path"]


@pytest.mark.parametrize("vector", named(LONG_BLOCKS["edge"]))
def test_extreme_token_ids_agree(vector: dict[str, Any]) -> None:
    """Zero, the largest id and a run of one placeholder id hash as elsewhere."""
    hashes = prefix_hashes(vector["tokens"], vector["block_size"])
    (key,) = chain(vector["tokens"], vector["block_size"])

    assert [str(value) for value in hashes] == [vector["prefix_hash_dec"]]
    assert base64.b64encode(key).decode() == vector["b64be"]


@pytest.mark.parametrize(
    ("tokens", "parent", "expected"),
    [
        (range(1, 17), None, [16863443419780771464]),
        (range(100, 120), None, [10823191264391160519]),
        (range(1, 33), None, [16863443419780771464, 12466389667045779788]),
        (
            range(64),
            None,
            [
                15310707395893867146,
                13769157705258532664,
                11879827756109914528,
                3888788807566526800,
            ],
        ),
        (range(50, 82), 3735928559, [13185224009891017151, 2998384554010166533]),
        (range(10), None, []),
    ],
)
def test_frozen_anchors(tokens: range, parent: int | None, expected: list[int]) -> None:
    """The contract's anchors at 16 tokens per block are met to the bit."""
    assert prefix_hashes(tokens, 16, parent) == expected


def test_anchor_wire_form() -> None:
    """Keys are big-endian on the wire."""
    keys = chain(range(64), 16)

    assert b"".join(keys).hex() == (
        "d47a8f41c833328abf15dffb16447f38a4dda066f3c1e1a035f7c0d119848950"
    )
    assert content_hashes(range(1, 33), 16)[1] == 2287610619914608821


def run_generator(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of the generator in *directory*, where it may write."""
    script = directory / "generate.py"
    script.write_text(GENERATOR.read_text(encoding="utf-8"), encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_generator_agrees_with_the_file() -> None:
    """The independent generator computes what the published file says."""
    result = subprocess.run(
        [sys.executable, str(GENERATOR), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert result.returncode == 0, result.stderr


def test_generator_names_a_changed_vector(tmp_path: Path) -> None:
    """One changed digit makes --check exit 1 and say where."""
    assert run_generator(tmp_path).returncode == 0
    written = tmp_path / "fingerprint.json"
    text = written.read_text(encoding="utf-8")
    written.write_text(text.replace("9581a6bbf9cef45a", "9581a6bbf9cef45b", 1), encoding="utf-8")

    result = run_generator(tmp_path, "--check")

    assert result.returncode == 1
    assert "worked-example: wire_keys_hex differs" in result.stderr


@pytest.mark.parametrize("content", [None, "{", '{"vectors": 3}', '{"vectors": []}'])
def test_generator_reports_an_unusable_file(tmp_path: Path, content: str | None) -> None:
    """A missing, broken or empty file is a difference, not a traceback."""
    if content is not None:
        (tmp_path / "fingerprint.json").write_text(content, encoding="utf-8")

    result = run_generator(tmp_path, "--check")

    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "fingerprint.json" in result.stderr
