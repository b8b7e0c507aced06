"""Child processes: a server to measure, clients that load it, and what they cost in CPU time."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.messages import STEPS_CALL
from benchmarks.starting_line import READY

_START_S = 20
_STOP_S = 20


@dataclass(frozen=True, slots=True)
class Serving:
    """A running server.

    Attributes:
        target: Where its gRPC services are.
        pid: Its process.
    """

    target: str
    pid: int

    def cpu_ns(self) -> int:
        """Return the CPU time of all its threads since they began, in nanoseconds."""
        return self._scheduled_ns(0)

    def waited_ns(self) -> int:
        """Return how long its threads could have run but had no core, in nanoseconds."""
        return self._scheduled_ns(1)

    def _scheduled_ns(self, column: int) -> int:
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(path.read_text(encoding="utf-8").split()[column]) for path in threads)

    def steps(self) -> dict[str, dict[str, float]]:
        """Return the handlers' steps since the last call, of a server that times them."""
        with grpc.insecure_channel(self.target) as channel:
            seen: dict[str, dict[str, float]] = json.loads(channel.unary_unary(STEPS_CALL)(b""))
        return seen

    def resident_bytes(self) -> int:
        """Return its resident memory."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="utf-8").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serving(entries_max: int, *options: str) -> Iterator[Serving]:
    """Run ``benchmarks.server`` in a process of its own until the block ends.

    Args:
        entries_max: The index's cap.
        options: Of its command line.
    """
    with serving_command("benchmarks.server", str(entries_max), *options) as running:
        yield running


@contextmanager
def serving_command(module: str, *arguments: str) -> Iterator[Serving]:
    """Run *module* in a process of its own until the block ends; it prints its address first.

    Args:
        module: Serves until it is terminated.
        arguments: Of its command line.
    """
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("the server has no output")
            address = process.stdout.readline().strip()
            _wait_healthy(address)
            yield Serving(target=address, pid=process.pid)
        finally:
            process.terminate()
            process.wait(_STOP_S)


def _wait_healthy(target: str) -> None:
    with grpc.insecure_channel(target) as channel:
        grpc.channel_ready_future(channel).result(_START_S)
        request = health_pb2.HealthCheckRequest()
        health_pb2_grpc.HealthStub(channel).Check(request, timeout=_START_S)


class Client:
    """A client process: prepares, waits for the word, prints one JSON object at its end.

    Args:
        module: It is ``python -m benchmarks.<module>``.
        arguments: Its arguments.
    """

    def __init__(self, module: str, *arguments: object) -> None:
        command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def wait_ready(self) -> None:
        """Wait until it has prepared itself."""
        if self._process.stdout is None or self._process.stdout.readline().strip() != READY:
            self._process.kill()
            raise RuntimeError("a client did not get ready")

    def result(self, timeout_s: float) -> dict[str, Any]:
        """Wait for the end and return what it printed."""
        try:
            output, _ = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        if self._process.returncode:
            raise RuntimeError(f"a client ended with {self._process.returncode}")
        printed: dict[str, Any] = json.loads(output)
        return printed

    def go(self) -> None:
        """Let it start."""
        if self._process.stdin is not None:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
