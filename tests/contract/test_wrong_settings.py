"""A process told something that cannot be meant ends at once with exit code 2 and one line."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

import inferencecache


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("serve", "--engine-block-size=0"), ("--engine-block-size", "'0'", "at least 1")),
        (("serve", "--engine-block-size=-16"), ("--engine-block-size", "'-16'", "at least 1")),
        (("serve", "--allowed-controller-sa=foo"), ("'foo'", "system:serviceaccount:")),
        (("serve", "--control-client-names=cn:x"), ("--control-tls-client-ca-file",)),
        (("serve",), ("--allowed-controller-sa", "--insecure-disable-auth")),
        (("subscribe", "--block-size=0"), ("--block-size", "'0'", "at least 1")),
        (("replay", "--server=localhost"), ("--server", "'localhost'", "HOST:PORT")),
    ],
)
async def test_process_ends_with_2(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    """Nothing is guessed: a block size of 0 does not quietly become 16."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "inferencecache",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(inferencecache.__file__).parents[1])},
    )
    stdout, stderr = await process.communicate()

    assert (process.returncode, stdout) == (2, b"")
    (line,) = stderr.decode().splitlines()
    assert line.startswith("inferencecache: error: ")
    assert all(word in line for word in words), line
