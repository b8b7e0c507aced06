"""From an engine's ZMQ message to a lookup that finds it, with every part in its own process.

Workload: one engine that publishes 50 batches a second, prompts of 100 blocks; ``inferencecache
subscribe`` with default settings; a server with default settings; a gateway that looks prompts up
until they are known. 20 k stored blocks a second, then 10 k stored and 2 k evicted. Seed:
``workload.SEED``. Budget: 20 s per phase. All share the machine's cores.
"""

import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

from benchmarks import producer_evictions, producer_replay
from benchmarks.options import Options
from benchmarks.row import Bound, Row
from benchmarks.serving import Client, serving
from benchmarks.workload import MODEL, SCHEME, TENANT

TARGET_MS = 250
AWAY_TARGET_MS = 50
_ENTRIES_MAX = 1_000_000
_PREPARE_S = 60
_READY_S = 20
_POLL_S = 0.05
_PHASES = ((20_000, 0), (10_000, 2_000))


def run(options: Options) -> Iterator[Row]:
    """Yield how long it takes until a stored prompt is found, and what parts of the way cost."""
    for stored, evicted in _PHASES:
        yield from _phase(options, stored, evicted)
    yield from producer_evictions.rows(options)
    yield from producer_replay.rows(options)


def _phase(options: Options, stored: int, evicted: int) -> Iterator[Row]:
    seconds = 2 * options.load_s
    with serving(_ENTRIES_MAX) as server:
        engine_port, page_port = _free_port(), _free_port()
        client = Client(
            "producer_engine",
            server.target,
            *("--port", engine_port, "--seconds", seconds),
            *("--blocks-per-s", stored, "--evictions-per-s", evicted),
        )
        client.wait_ready()
        with _subscribing(server.target, engine_port, page_port) as pid:
            before_ns = _cpu_ns(pid), server.cpu_ns()
            client.go()
            found = client.result(seconds + _PREPARE_S)
            producer_cpu = (_cpu_ns(pid) - before_ns[0]) / seconds / 1e9
            server_cpu = (server.cpu_ns() - before_ns[1]) / seconds / 1e9
            away_ms = 1_000 * _number(page_port, "longest_away_seconds")
            away_cpu_ms = 1_000 * _number(page_port, "longest_away_cpu_seconds")
            pending = _number(page_port, "pending_keys")
    name = f"{stored // 1_000} k stored" + (f" + {evicted // 1_000} k evicted" if evicted else "")
    yield Row(
        what=f"event to lookup p99, {name} blocks/s",
        unit="ms",
        value=found["p99_ms"],
        bound=Bound.AT_MOST,
        target=TARGET_MS,
        note=_note(found, producer_cpu, server_cpu) + f"; {pending:.0f} keys pending at the end",
    )
    yield Row(
        what=f"... the subscriber's longest time away from its socket, {name} blocks/s",
        unit="ms",
        value=away_ms,
        bound=Bound.AT_MOST,
        target=AWAY_TARGET_MS,
        note=f"by the wall, so it includes what other processes take of the machine; "
        f"at most {away_cpu_ms:.1f} ms of CPU time in between",
    )
    yield Row(
        what=f"... the same by CPU time, {name} blocks/s",
        unit="ms",
        value=away_cpu_ms,
        bound=Bound.AT_MOST,
        target=AWAY_TARGET_MS,
        note="what the loop's own work takes, on whatever machine",
    )


def _note(found: dict[str, Any], producer_cpu: float, server_cpu: float) -> str:
    return (
        f"p50 {found['p50_ms']:.0f}, max {found['max_ms']:.0f} of {found['samples']}; "
        f"CPU producer {producer_cpu:.0%}, server {server_cpu:.0%}; "
        f"engine late by {found['late_ms']:.0f} ms"
    )


@contextmanager
def _subscribing(target: str, engine_port: int, page_port: int) -> Iterator[int]:
    """Run ``inferencecache subscribe`` until the block ends; yield its process id."""
    options = {
        "engine-endpoint": f"tcp://127.0.0.1:{engine_port}",
        "server": target,
        "replica-id": "engine-0",
        "model-id": MODEL,
        "tenant-id": TENANT,
        "hash-scheme": SCHEME,
        "engine-metrics-url": "",
        "metrics-listen": f"127.0.0.1:{page_port}",
        "log-level": "error",
    }
    command = [sys.executable, "-m", "inferencecache", "subscribe"]
    command += [f"--{flag}={value}" for flag, value in options.items()]
    with subprocess.Popen(command) as process:
        try:
            _wait_ready(page_port)
            yield process.pid
        finally:
            process.terminate()
            process.wait(_READY_S)


def _wait_ready(page_port: int) -> None:
    for _ in range(int(_READY_S / _POLL_S)):
        try:
            _page(page_port, "readyz")
        except (urllib.error.URLError, ConnectionError):
            sleep(_POLL_S)
        else:
            return
    raise RuntimeError("the producer did not get ready")


def _number(page_port: int, name: str) -> float:
    """Return one number of the producer's metrics page."""
    for line in _page(page_port, "metrics").splitlines():
        if line.startswith(f"inferencecache_producer_{name}{{"):
            return float(line.rsplit(" ", 1)[1])
    raise RuntimeError(f"the producer's page lacks {name}")


def _page(page_port: int, name: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{page_port}/{name}") as answer:
        content: bytes = answer.read()
    return content.decode()


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port: int = opened.getsockname()[1]
    return port


def _cpu_ns(pid: int) -> int:
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text(encoding="utf-8").split()[0]) for path in threads)
