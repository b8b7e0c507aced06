"""Run ``inferencecache get`` as a process of its own."""

import asyncio
import os
import sys
from pathlib import Path

from replay_process import Ended, ended

import inferencecache


async def run_get(*arguments: str) -> Ended:
    """Run the command to its end."""
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("INFERENCECACHE_")
    }
    package_home = str(Path(inferencecache.__file__).parents[1])
    return await ended(
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "inferencecache",
            "get",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environ | {"PYTHONPATH": package_home, "COLUMNS": "80"},
        )
    )
