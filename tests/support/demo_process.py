"""The demo as a process, its lines as they come, and curl."""

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

_READY = "/kill"
_LIMIT_S = 60
_FREE_PORTS = (
    *("--listen", "127.0.0.1:0", "--engine-control-listen", "127.0.0.1:0"),
    *("--control-listen", "127.0.0.1:0"),
)


async def start_demo(*arguments: str, **variables: str) -> asyncio.subprocess.Process:
    """Start the command on free ports, its output not on a terminal."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "inferencecache", "demo", *_FREE_PORTS, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **variables},
    )


class Demo:
    """A demo that runs.

    Attributes:
        lines: What it has said.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._came = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())
        self.lines: list[str] = []

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            async with self._came:
                self.lines.append(line.decode().rstrip("\n"))
                self._came.notify_all()
        async with self._came:
            self._came.notify_all()

    def named(self, name: str) -> str:
        """Return what the greeting says of *name*."""
        return next(line for line in self.lines if line.startswith(f"{name}: "))[len(name) + 2 :]

    @property
    def gateway(self) -> str:
        """Base URL of the OpenAI paths."""
        return self.named("gateway")

    @property
    def directory(self) -> Path:
        """Where its files are."""
        return Path(self.named("files"))

    @property
    def control(self) -> str:
        """Base URL of the server's control listener."""
        return re.findall(r"decisions (http://[^/]+)", self.named("server"))[0]

    @property
    def kill(self) -> str:
        """Base URL of the engines that can be killed."""
        return next(
            re.findall(r"http://[^ ]+/engines", line)[0] for line in self.lines if _READY in line
        )

    async def until(self, holds: Callable[[str], bool], after: int = 0) -> str:
        """Wait for a line among those behind the first *after* ones, and return it."""
        async with asyncio.timeout(_LIMIT_S), self._came:
            while True:
                for line in self.lines[after:]:
                    if holds(line):
                        return line
                if self._reading.done():
                    raise AssertionError("\n".join(self.lines))
                await self._came.wait()

    async def until_held(self, prefixes: int) -> None:
        """Wait until the server has heard of so many prefixes that engines hold."""
        async with asyncio.timeout(_LIMIT_S):
            while await self._held() < prefixes:
                pass

    async def _held(self) -> int:
        said = await bash(f"curl --silent --show-error --fail {self.control}/snapshot")
        held: int = msgspec.json.decode(said)["totalPrefixes"]
        return held

    async def chat(self, name: str) -> tuple[int, Any]:
        """Send one of its files with curl; return status and document."""
        return await self._curl(f"/chat/completions -d @{self.directory}/{name}")

    async def complete(self, prompt: str) -> tuple[int, Any]:
        """Send a prompt with curl; return status and document."""
        body = msgspec.json.encode({"model": "demo-model", "prompt": prompt}).decode()
        return await self._curl(f"/completions -d {shlex.quote(body)}")

    async def _curl(self, rest: str) -> tuple[int, Any]:
        said = await bash(
            f"curl --silent --show-error --write-out '\\n%{{http_code}}' {self.gateway}{rest}"
        )
        document, _, status = said.rpartition("\n")
        return int(status), msgspec.json.decode(document)

    async def post(self, engine: str, deed: str) -> str:
        """Kill or start an engine with curl; return what is said."""
        said = await bash(f"curl --silent --show-error -X POST {self.kill}/{engine}/{deed}")
        message: str = msgspec.json.decode(said)["message"]
        return message

    async def kill_all(self) -> None:
        """End the process if it runs still; what it complained about comes out."""
        assert self._process.stderr is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading
        sys.stderr.write((await self._process.stderr.read()).decode())

    async def end(self) -> int:
        """Press Ctrl-C; return the exit code of a demo that has complained about nothing."""
        assert self._process.stderr is not None
        self._process.send_signal(signal.SIGINT)
        code = await self._process.wait()
        await self._reading
        assert await self._process.stderr.read() == b""
        return code


async def bash(script: str, **variables: str) -> str:
    """Run a script; return what it says, and fail if it does."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **variables},
    )
    async with asyncio.timeout(_LIMIT_S):
        stdout, stderr = await process.communicate()
    assert process.returncode == 0, (script, stdout.decode(), stderr.decode())
    return stdout.decode()


@asynccontextmanager
async def running_demo(*arguments: str) -> AsyncIterator[Demo]:
    """Run a demo without made-up prompts, where everything is quick."""
    with TemporaryDirectory() as directory:
        process = await start_demo(
            *("--rate", "0", "--base-latency", "0ms", *arguments), TMPDIR=directory
        )
        demo = Demo(process)
        try:
            await demo.until(lambda line: _READY in line)
            yield demo
        finally:
            await demo.kill_all()
