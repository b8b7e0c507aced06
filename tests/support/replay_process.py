"""Run ``inferencecache replay`` and its like as processes of their own."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import inferencecache


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the process ended.

    Attributes:
        code: Exit code.
        stdout: Everything it printed.
        stderr: Every line it wrote there.
    """

    code: int
    stdout: str
    stderr: list[str]


async def start_command(*arguments: str) -> asyncio.subprocess.Process:
    """Start ``inferencecache`` with *arguments* and return its process."""
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("INFERENCECACHE_")
    }
    package_home = str(Path(inferencecache.__file__).parents[1])
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "inferencecache",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ | {"PYTHONPATH": package_home, "COLUMNS": "80"},
    )


async def start_replay(*arguments: str) -> asyncio.subprocess.Process:
    """Start the replay and return its process."""
    return await start_command("replay", *arguments)


async def ended(process: asyncio.subprocess.Process) -> Ended:
    """Wait for the end of *process*."""
    stdout, stderr = await process.communicate()
    assert process.returncode is not None
    return Ended(
        code=process.returncode, stdout=stdout.decode(), stderr=stderr.decode().splitlines()
    )


async def run_replay_command(*arguments: str) -> Ended:
    """Run the replay to its end."""
    return await ended(await start_replay(*arguments))


async def run_simulate_command(*arguments: str) -> Ended:
    """Run the simulation to its end."""
    return await ended(await start_command("simulate", *arguments))
