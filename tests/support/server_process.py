"""Run ``inferencecache serve`` as a process of its own and read what it logs."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGKILL
from tempfile import TemporaryDirectory

import inferencecache

READY_SECONDS = 60.0


class ServerProcess:
    """A running server.

    Attributes:
        startup: The fields of its ``startup`` event.
        lines: Everything it has logged so far, one event each.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.startup: dict[str, object] = {}
        self.lines: list[str] = []

    @property
    def grpc_target(self) -> str:
        """Where its gRPC services are."""
        return str(self.startup["grpc_addr"])

    @property
    def http_url(self) -> str:
        """Where its public pages are."""
        return f"http://{self.startup['http_addr']}"

    @property
    def events(self) -> list[str]:
        """The names of the events it has logged, as JSON."""
        return [json.loads(line)["msg"] for line in self.lines]

    async def read_until(self, event: str) -> dict[str, object]:
        """Read the log up to *event* and return its fields."""
        while line := await self._read_line():
            fields: dict[str, object] = json.loads(line)
            if fields["msg"] == event:
                return fields
        raise AssertionError(f"no {event} in {self.lines}")

    async def end(self, signal_number: int) -> int:
        """Send a signal, read the rest of the log, and return the exit code."""
        self.process.send_signal(signal_number)
        return await self.exited()

    async def exited(self) -> int:
        """Read the rest of the log and return the exit code."""
        while await self._read_line():
            pass
        return await self.process.wait()

    async def _read_line(self) -> str:
        assert self.process.stderr is not None
        line = (await self.process.stderr.readline()).decode()
        if line:
            self.lines.append(line)
        return line


async def spawn(
    *arguments: str, directory: str, environ: Mapping[str, str] | None = None
) -> ServerProcess:
    """Start ``inferencecache serve`` with *arguments* in *directory*."""
    package_home = str(Path(inferencecache.__file__).parents[1])
    homes = [package_home, (environ or {}).get("PYTHONPATH", "")]
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("INFERENCECACHE_", "KUBERNETES_"))
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "inferencecache",
        "serve",
        *arguments,
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        cwd=directory,
        env={**inherited, **(environ or {}), "PYTHONPATH": os.pathsep.join(filter(None, homes))},
    )
    return ServerProcess(process)


@asynccontextmanager
async def serving(
    *arguments: str, environ: Mapping[str, str] | None = None
) -> AsyncIterator[ServerProcess]:
    """Run a server on free ports of the loopback address for the length of the block."""
    with TemporaryDirectory() as directory:
        server = await spawn(
            "--grpc-bind-address=127.0.0.1:0",
            "--http-bind-address=127.0.0.1:0",
            "--snapshot-bind-address=127.0.0.1:0",
            "--insecure-disable-auth",
            *arguments,
            directory=directory,
            environ=environ,
        )
        try:
            async with asyncio.timeout(READY_SECONDS):
                server.startup = await server.read_until("startup")
            yield server
        finally:
            if server.process.returncode is None:
                server.process.send_signal(SIGKILL)
                await server.exited()
            transport = server.process._transport  # type: ignore[attr-defined] # else it warns at exit
            transport.close()
