"""The runner ends with its tally and the right status, whatever is in the files."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
CONFIG = {"ttl_s": 60, "max_entries": 0, "engine_block_size": 16}
GOOD = {"name": "good", "config": CONFIG, "steps": [{"op": "sweep", "at_us": 1}]}
LOOKUP = {"op": "lookup", "at_us": 1, "request": {"tenantId": "t"}}
Write = Callable[[bytes], Path]


def with_steps(*steps: object, name: str = "bad") -> bytes:
    """Return a scenario of these steps as a line."""
    return json.dumps({"name": name, "config": CONFIG, "steps": steps}).encode() + b"\n"


def run(*paths: Path) -> tuple[list[str], int]:
    """Run the script; return its lines and its status."""
    ended = subprocess.run(
        [sys.executable, str(RUN), *map(str, paths)], capture_output=True, check=False, timeout=100
    )
    assert ended.stderr == b""
    return ended.stdout.decode().splitlines(), ended.returncode


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file of scenarios."""

    def written(content: bytes, name: str = "some.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return written


GOOD_LINE = json.dumps(GOOD).encode() + b"\n"


def test_scenarios_that_go_wrong_are_failed_ones(write: Write) -> None:
    """Each of these costs itself alone; what is right before and after them passes."""
    bad = [
        b"{not json}\n",
        b"\xff\xfe\n",
        b"[1, 2]\n",
        b"null\n",
        b"{}\n",
        b'{"name": "x", "config": {}, "steps": []}\n',
        b'{"name": "x", "config": null, "steps": []}\n',
        json.dumps(GOOD | {"steps": 5}).encode() + b"\n",
        b"[" * 100_000 + b"\n",
        with_steps({"op": "unheard-of", "at_us": 1}),
        with_steps({"op": ["sweep"], "at_us": 1}),
        with_steps({"op": "sweep"}),
        with_steps({"at_us": 1}),
        with_steps("sweep"),
        with_steps({"op": "lookup", "at_us": 1}),
        with_steps({"op": "lookup", "at_us": 1, "request": {"nobodyKnows": 1}}),
        with_steps({"op": "report", "at_us": 1, "update": {"prefixes": 5}}),
        with_steps(LOOKUP | {"want": {"reason_code": "PREFIX_MATCH"}}),
        with_steps({"op": "sweep", "at_us": "noon"}),
        with_steps({"op": "unheard-of", "at_us": 1}, name="half \ud800 a pair"),
    ]
    lines, status = run(write(GOOD_LINE + b"".join(bad) + GOOD_LINE))

    assert lines[-1] == f"2 passed, {len(bad)} failed"
    assert status == 1


def test_files_that_cannot_be_read_are_failed_scenarios(tmp_path: Path, write: Write) -> None:
    """Missing, a directory, no gzip, half a gzip, a damaged one; the others are played."""
    packed = gzip.compress(GOOD_LINE * 100)
    damaged = bytearray(packed)
    damaged[12:30] = b"\xff" * 18
    paths = [
        tmp_path / "missing.jsonl",
        tmp_path,
        write(GOOD_LINE, "plain.jsonl.gz"),
        write(packed[:-20], "half.jsonl.gz"),
        write(bytes(damaged), "damaged.jsonl.gz"),
    ]
    lines, status = run(*paths, write(packed, "good.jsonl.gz"))

    assert lines[-1] == "100 passed, 5 failed"
    assert status == 1
    assert all(any(str(path) in line for line in lines) for path in paths)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file_has_nothing_that_could_fail(write: Write, content: bytes) -> None:
    """Nothing passed, nothing failed."""
    assert run(write(content)) == (["0 passed, 0 failed"], 0)


def test_all_good_is_status_0(write: Write) -> None:
    """And the tally is the last line."""
    assert run(write(GOOD_LINE * 3)) == (["3 passed, 0 failed"], 0)
